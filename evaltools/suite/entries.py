"""Models x jobs: each entry of a suite is the request of a command that exists."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.benchmark.command import COMMAND as BENCHMARK
from evaltools.benchmark.command import request_of_flags as benchmark_of_flags
from evaltools.commands.gates import request_of_words
from evaltools.configuration import Configuration
from evaltools.errors import UsageError
from evaltools.parameter import did_you_mean
from evaltools.request import Request
from evaltools.request.flags import TEST_NAME, parse_flags
from evaltools.result.result import model_names
from evaltools.runs.stored import seen_from
from evaltools.suite.file import ENDING, Job, models_below, read_suite_file, words_of

_DIFF: Final = Job("diff", ("diff",), Path())
_MODEL: Final = ("model_file", "graph")
_OUTPUTS: Final = ("output_file", "output_folder")


class Entry(Struct, frozen=True):
    """A job with a model: ``request`` is meant from the working folder."""

    model: str
    path: Path
    job: str
    request: Request

    @property
    def key(self) -> str:
        """What it is called in the journal, and in messages."""
        return f"{self.job} of {self.model}"

    @property
    def data(self) -> dict[str, Path]:
        """The files and folders that it reads beside the model, by the option that names them."""
        options = self.request.options
        return {
            f"what --{name} of the job {self.job} names{f', {place}' if place else ''}": path
            for name in options.stated
            if name not in _MODEL
            for place, path in enumerate(options.content(name))
        }


def entries_of(suite: Request) -> list[Entry]:
    """Every job with every model that it is about, model by model.

    Raises :class:`UsageError` and its kinds for what is wrong with a file, a job or a configuration.
    """
    paths, configurations, jobs = _read(suite)
    _require_names(jobs, configurations, paths)
    names = dict(zip(paths, model_names(paths), strict=True))
    return [
        Entry(names[path], path, job.name, _request(job, path, configurations))
        for path in paths
        for job in jobs
        if _is_about(job, path)
    ]


def _read(suite: Request) -> tuple[list[Path], list[Configuration], list[Job]]:
    """The models, configurations and jobs of all files and flags together."""
    options = suite.options
    paths: list[Path] = []
    configurations: list[Configuration] = []
    jobs: list[Job] = []
    for text in options.texts("model_paths"):
        path = Path(text)
        if path.suffix == ENDING:
            file = read_suite_file(path)
            paths += file.models
            own = replace(suite, tests=file.configurations, folder=path.parent.absolute())
            configurations += seen_from(own, Path.cwd()).tests
            jobs += file.jobs
        elif path.is_dir():
            paths += models_below(path)
        elif path.is_file():
            paths.append(path)
        else:
            raise UsageError(f"{text}: no such file or folder; give a folder with models, a model, or a suite.toml")
    run_dir = options.path("run_dir")
    if run_dir is not None:
        paths = [path for path in paths if run_dir.resolve() not in path.resolve().parents]
    if not paths:
        raise UsageError(f"no .tflite file is below {', '.join(options.texts('model_paths'))}; give where models are")
    twice = next((path for path, count in Counter(paths).items() if count > 1), None)
    if twice is not None:
        raise UsageError(f"{twice} is given twice; give each model once")
    jobs += [_job(text, options.path("job_folder") or Path()) for text in options.texts("job")]
    configurations += suite.tests
    return paths, configurations or [Configuration(TEST_NAME)], jobs or [_DIFF]


def _job(text: str, folder: Path) -> Job:
    name, colon, command = text.partition(":")
    if not colon or not name.strip() or " " in name.strip():
        raise UsageError(f'--job={text!r}: expected "NAME: command", as in "fast: benchmark --num_runs=20"')
    return Job(name.strip(), words_of(command, f"--job {name.strip()}"), folder)


def _require_names(jobs: Sequence[Job], configurations: Sequence[Configuration], paths: Sequence[Path]) -> None:
    """Raise :class:`UsageError` for names that stand twice, and for those that stand for nothing."""
    for what, names in (
        ("jobs", [job.name for job in jobs]),
        ("configurations", [each.name for each in configurations]),
    ):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UsageError(f"two {what} are named {twice!r}; give each its own name")
    known = [configuration.name for configuration in configurations]
    for job in jobs:
        unknown = next((name for name in job.configurations if name not in known), None)
        if unknown is not None:
            hint = did_you_mean(unknown, known)
            raise UsageError(
                f"job {job.name}: no configuration is named {unknown!r}; there are {', '.join(known)}.{hint}"
            )
        idle = next((pattern for pattern in job.models if not any(_fits(path, pattern) for path in paths)), None)
        if idle is not None:
            raise UsageError(f"job {job.name}: no model's file name fits {idle!r}; use a pattern such as 'mobilenet*'")


def _is_about(job: Job, path: Path) -> bool:
    return not job.models or any(_fits(path, pattern) for pattern in job.models)


def _fits(path: Path, pattern: str) -> bool:
    return path.name == pattern or fnmatch.fnmatchcase(path.name, pattern)


def _request(job: Job, path: Path, configurations: Sequence[Configuration]) -> Request:
    """The request of a job with a model; raises :class:`UsageError`, which names the job."""
    tests = tuple(each for each in configurations if not job.configurations or each.name in job.configurations)
    try:
        request = _parsed(job, path.absolute())
        _require_plain(request)
    except UsageError as error:
        raise UsageError(f"job {job.name}: {error}") from None
    texts = (f"--config={each.name}: {' '.join(each.to_flags())}" for each in tests)
    command = ("evaltools", *job.words, str(path), *texts)
    return replace(seen_from(request, Path.cwd()), tests=tests, command=command)


def _parsed(job: Job, model: Path) -> Request:
    folder = job.folder.absolute()
    name, *rest = job.words
    if name == BENCHMARK.words:
        flags = parse_flags(name, "", "", BENCHMARK.groups, [*rest, f"--graph={model}"])
        return benchmark_of_flags(flags, (), folder)
    request = request_of_words([*job.words, f"--model_file={model}"], folder)
    if request is None:
        raise UsageError(f"{' '.join(job.words)!r} is not a job; use diff, another task, device run TASK, or benchmark")
    return request


def _require_plain(request: Request) -> None:
    """Raise :class:`UsageError` for what the suite says itself: configurations, and where results go."""
    if request.tests != (Configuration(TEST_NAME),):
        raise UsageError("leave configurations out of its command; they are those of the suite")
    for name in request.options.stated:
        if request.options.parameters[name].role in _OUTPUTS:
            raise UsageError(f"leave --{name} out of its command; the suite says where results go")
