"""What flags mean, in which order delegates are applied, and what is refused."""

from __future__ import annotations

import pickle

import pytest

from evaltools.delegates import PARAMETERS, DelegateSettings
from evaltools.delegates.native_only import HEXAGON
from evaltools.delegates.npu_flags import FLAGS as VENDOR_FLAGS
from evaltools.delegates.registry import OURS
from evaltools.errors import UsageError
from evaltools.parameter import format_value


def test_each_delegate_of_python_says_what_it_is_beside_a_phones() -> None:
    assert [delegate.name for delegate in OURS if bool(delegate.here) != bool(delegate.runtimes)] == []


def settings(*flags: str) -> DelegateSettings:
    return DelegateSettings.from_flags([tuple(flag.split("=", 1)) for flag in flags])  # type: ignore[misc]


def test_delegates_rank_by_the_position_of_their_enabling_flag() -> None:
    chosen = settings("gpu_backend=cl", "external_delegate_path=x.so", "use_gpu=true", "use_xnnpack=true")
    assert [delegate.name for delegate in chosen.requested] == ["EXTERNAL", "GPU", "XNNPACK"]


def test_settings_print_back_as_the_flags_given() -> None:
    flags = ["use_nnapi=true", "nnapi_accelerator_name=dsp", "disable_nnapi_cpu=false", "max_delegated_partitions=3"]
    assert settings(*flags).to_flags() == [f"--{flag}" for flag in flags]


def test_the_record_holds_defaults_and_common_flags_of_a_delegate() -> None:
    chosen = settings("use_hexagon=true", "max_delegated_partitions=2")
    assert chosen.effective_options(HEXAGON) == {
        "use_hexagon": True,
        "hexagon_lib_path": "/data/local/tmp",
        "hexagon_profiling": False,
        "max_delegated_partitions": 2,
        "min_nodes_per_partition": 0,
    }


def test_not_given_differs_from_false() -> None:
    assert not settings().is_given("use_xnnpack")
    assert settings("use_xnnpack=false").is_given("use_xnnpack")


@pytest.mark.parametrize("name", PARAMETERS)
def test_every_flag_reads_back_its_printed_default(name: str) -> None:
    parameter = PARAMETERS[name]
    assert parameter.parse(format_value(parameter.default)) == parameter.default
    assert parameter.help.endswith(".")


def test_the_flags_are_those_of_the_native_tools() -> None:
    """Written down by hand from the native tools' registration of flags; a few are ours.

    Those of vendors of NPUs are in tests/delegates/test_npu_flags.py.
    """
    native = """
        max_delegated_partitions min_nodes_per_partition first_delegate_node_index last_delegate_node_index
        gpu_invoke_loop_times delegate_serialize_dir delegate_serialize_token
        use_xnnpack xnnpack_force_fp16 xnnpack_weight_cache_file_path xnnpack_runtime_flags
        use_ynnpack ynnpack_static_shape ynnpack_fast_math ynnpack_consistent_arithmetic ynnpack_no_excess_precision
        use_gpu gpu_precision_loss_allowed gpu_experimental_enable_quant gpu_inference_for_sustained_speed gpu_backend
        gpu_wait_type
        use_nnapi nnapi_execution_preference nnapi_execution_priority nnapi_accelerator_name disable_nnapi_cpu
        nnapi_allow_fp16 nnapi_allow_dynamic_dimensions nnapi_use_burst_mode nnapi_support_library_path
        use_hexagon hexagon_lib_path hexagon_profiling
        use_coreml coreml_version
        external_delegate_path external_delegate_options
        stable_delegate_settings_file
    """
    ours = """
        external_delegate_per_worker gpu_infinite_float_capping gpu_allow_src_quantized_fc_conv_ops
        use_npu npu_vendor npu_soc dispatch_library_path compiler_plugin_library_path
    """
    assert sorted(set(PARAMETERS) - set(VENDOR_FLAGS)) == sorted(native.split() + ours.split())


def test_true_defaults_are_the_native_ones() -> None:
    true_by_default = {name for name, each in PARAMETERS.items() if each.default is True} - set(VENDOR_FLAGS)
    assert true_by_default == {"gpu_precision_loss_allowed", "gpu_experimental_enable_quant", "disable_nnapi_cpu"}


TWO_EXTERNALS = (
    "external_delegate_path=a.so",
    "external_delegate_options=k:1",
    "external_delegate_per_worker=true",
    "external_delegate_path=b.so",
    "external_delegate_options=k:2",
)


def test_each_of_several_external_delegates_has_the_flags_behind_its_path() -> None:
    chosen = settings(*TWO_EXTERNALS, "use_xnnpack=true")
    assert [delegate.name for delegate in chosen.requested] == ["EXTERNAL", "EXTERNAL#2", "XNNPACK"]
    first, second, _ = map(chosen.effective_options, chosen.requested)
    assert first == {
        "external_delegate_path": "a.so",
        "external_delegate_options": "k:1",
        "external_delegate_per_worker": True,
    }
    assert second == {
        "external_delegate_path": "b.so",
        "external_delegate_options": "k:2",
        "external_delegate_per_worker": False,
    }
    assert chosen.values("external_delegate_path") == ["a.so", "b.so"]
    assert chosen.to_flags()[:5] == [f"--{flag}" for flag in TWO_EXTERNALS]


def test_workers_share_one_session_unless_every_external_delegate_allows_more() -> None:
    assert settings(*TWO_EXTERNALS).one_session
    assert not settings(*TWO_EXTERNALS, "external_delegate_per_worker=true").one_session


def test_flags_before_the_first_external_delegate_are_its_own() -> None:
    chosen = settings("external_delegate_options=k:1", "external_delegate_path=a.so", "external_delegate_path=b.so")
    assert [chosen.values_of(one).get("external_delegate_options") for one in chosen.requested] == ["k:1", None]


@pytest.mark.parametrize(
    ("index", "left"),
    [
        (0, ["--external_delegate_path=b.so", "--external_delegate_options=k:2"]),
        (1, [f"--{flag}" for flag in TWO_EXTERNALS[:3]]),
    ],
)
def test_one_of_several_external_delegates_can_be_left_out(index: int, left: list[str]) -> None:
    chosen = settings(*TWO_EXTERNALS)
    assert chosen.without(chosen.requested[index]).to_flags() == left


def test_several_external_delegates_survive_a_journey_to_another_process() -> None:
    for delegate in settings(*TWO_EXTERNALS).requested:
        assert pickle.loads(pickle.dumps(delegate)) == delegate


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("external_delegate_options=k:3", "--external_delegate_options is given twice, as "),
        ("external_delegate_options=k", "'k' is not a key:value pair"),
    ],
)
def test_options_of_a_further_external_delegate_are_checked(flag: str, message: str) -> None:
    flags = TWO_EXTERNALS if "3" in flag else TWO_EXTERNALS[:4]
    with pytest.raises(UsageError, match=message):
        settings(*flags, flag)


def test_the_others_keep_their_numbers_and_flags_where_some_are_left_out() -> None:
    paths = [f"external_delegate_path={path}" for path in "abcd"]
    chosen = settings(*paths, "external_delegate_options=k:d")
    left = chosen.without(chosen.requested[0])
    left = left.without(left.requested[1])
    assert [delegate.name for delegate in left.requested] == ["EXTERNAL#2", "EXTERNAL#4"]
    assert [left.values_of(delegate)["external_delegate_path"] for delegate in left.requested] == ["b", "d"]
    assert left.effective_options(left.requested[1])["external_delegate_options"] == "k:d"
    assert (left.value("external_delegate_path"), left.is_given("external_delegate_options")) == ("b", False)
    assert left.to_flags() == [
        "--external_delegate_path=b",
        *settings(paths[3], "external_delegate_options=k:d").to_flags(),
    ]
    assert pickle.loads(pickle.dumps(left)) == left
