"""The same inputs through a reference and other configurations, then how far apart the outputs are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal

from evaltools.tasks.framework import comes_with_evaltools
from evaltools.tasks.framework.common_options import EXECUTION_WITH_ONE_WORKER
from evaltools.tasks.framework.definition import Setting, Task, task
from evaltools.tasks.inference_diff import options as flags

_NOISE_FLOOR_RUNS: Final = 10


@task
def inference_diff(
    setting: Setting,
    num_runs: Annotated[int | None, flags.NUM_RUNS] = None,
    warmup_runs: Annotated[int | None, flags.WARMUP_RUNS] = None,
    output_map: Annotated[str, flags.OUTPUT_MAP] = "",
    signature: Annotated[str, flags.SIGNATURE] = "",
    seed: Annotated[int, flags.SEED] = 1,
    input_range: Annotated[tuple[str, ...], flags.INPUT_RANGE] = (),
    input_files: Annotated[tuple[str, ...], flags.INPUT_FILES] = (),
    inputs: Annotated[Literal["auto", "noise", "photos", "both"], flags.INPUTS] = "auto",
    input_images: Annotated[Path | None, flags.INPUT_IMAGES] = None,
    normalization: Annotated[str, flags.NORMALIZATION] = "auto",
    channel_order: Annotated[Literal["rgb", "bgr"], flags.CHANNELS] = "rgb",
    input_layout: Annotated[Literal["auto", "nhwc", "nchw"], flags.LAYOUT] = "auto",
    input_shape: Annotated[tuple[str, ...], flags.INPUT_SHAPE] = (),
    noise_floor_runs: Annotated[int | None, flags.NOISE_FLOOR_RUNS] = None,
    max_secs: Annotated[float, flags.MAX_SECS] = 60.0,
    output_kind: Annotated[tuple[str, ...], flags.OUTPUT_KIND] = (),
    max_avg_error: Annotated[tuple[str, ...], flags.MAX_AVG_ERROR] = (),
    max_quanta: Annotated[tuple[str, ...], flags.MAX_QUANTA] = (),
    min_snr_db: Annotated[tuple[str, ...], flags.MIN_SNR_DB] = (),
    locate: Annotated[bool, flags.LOCATE] = False,  # noqa: ARG001 - the command looks for the operator afterwards
    save_outputs: Annotated[Path | None, flags.SAVE_OUTPUTS] = None,
    load_reference: Annotated[Path | None, flags.LOAD_REFERENCE] = None,
    allow_model_mismatch: Annotated[bool, flags.ALLOW_MODEL_MISMATCH] = False,
) -> Task:
    """How far a delegate's outputs are from the CPU's, any model.

    How far a delegate's outputs are from the CPU's, for any model and without labels: differences per output beside a
    noise floor, latency, a verdict with its reason.
    stdout: the lines of the native tool. stderr: what ran, progress, tables, verdicts.
    """
    from evaltools.tasks.inference_diff.evaluation import comparison_task
    from evaltools.tasks.inference_diff.input_options import InputOptions
    from evaltools.tasks.inference_diff.material import DiffOptions, limits_of, prepare

    of_inputs = InputOptions(
        num_runs=num_runs,
        seed=seed,
        ranges=input_range,
        files=input_files,
        images=input_images,
        normalization=normalization,
        native=setting.native,
        kind=inputs,
        input_layout=input_layout,
        channel_order=channel_order,
    )
    if noise_floor_runs is None:
        noise_floor_runs = 0 if setting.native else _NOISE_FLOOR_RUNS
    options = DiffOptions(
        reference=setting.reference,
        tests=setting.tests,
        inputs=of_inputs,
        output_map=output_map,
        signature=signature,
        input_shapes=input_shape,
        noise_floor_runs=noise_floor_runs,
        warmup_runs=int(not setting.native) if warmup_runs is None else warmup_runs,
        max_secs=max_secs,
        output_kinds=output_kind,
        limits=limits_of(max_avg_error, max_quanta, min_snr_db),
        save_outputs=save_outputs,
        load_reference=load_reference,
        allow_model_mismatch=allow_model_mismatch,
        native=setting.native,
    )
    return comparison_task(prepare(setting.models, options))


COMMAND: Final = replace(
    comes_with_evaltools(
        inference_diff,
        "evaltools.tasks.inference_diff.metrics",
        native="evaltools.tasks.inference_diff.report",
        place=3,
        leaves_out=("margin", "record_examples"),
        execution=EXECUTION_WITH_ONE_WORKER,
    ),
    alias="diff",
    compares_models=False,
    native_reference="default",
    reference_outputs_at="evaltools.tasks.inference_diff.saved_outputs",
    next_steps_at="evaltools.tasks.inference_diff.report:next_steps",
)
