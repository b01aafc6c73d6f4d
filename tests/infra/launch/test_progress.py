"""Progress lines, read as they grow."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from infra.launch.level0 import HuggingFaceProgress, LightningProgress, progress_sources
from infra.launch.progress import JsonProgress, LineTail, PatternProgress, Progress, ProgressLog, parse_line


def test_half_a_line_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "p"
    reader = JsonProgress(path)
    assert reader.read() == []
    path.write_text('{"step": 1, "loss": 2.5}\n{"st')
    assert reader.read() == [Progress(step=1, loss=2.5)]
    with path.open("a") as file:
        file.write('ep": 2}\n')
    assert reader.read() == [Progress(step=2)]
    assert reader.read() == [] and reader.unreadable == 0


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.data())
def test_any_cut_gives_the_same_lines(tmp_path_factory, steps: list[int], data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("tail") / "p"
    whole = "".join(f'{{"step": {step}}}\n' for step in steps).encode()
    reader, seen, at = JsonProgress(path), [], 0
    while at < len(whole):
        size = data.draw(st.integers(1, len(whole)))
        with path.open("ab") as file:
            file.write(whole[at : at + size])
        at += size
        seen += [progress.step for progress in reader.read()]
    assert seen == steps


def test_a_shorter_file_is_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "p"
    tail = LineTail(path)
    path.write_text("one\ntwo\n")
    assert tail.lines() == ["one", "two"]
    path.write_text("new\n")
    assert tail.lines() == ["new"]


def test_nonsense_is_counted_not_fatal(tmp_path: Path) -> None:
    path = tmp_path / "p"
    path.write_bytes(b'hello\n[1]\n\xff\xfe\n\n{"step": "x", "loss": NaN, "phase": "lunch", "lr": 0.1}\n')
    reader = JsonProgress(path)
    assert reader.read() == [Progress(metrics={"lr": 0.1})]
    assert reader.unreadable == 3


def test_latest_facts_and_facts_at_a_step(tmp_path: Path) -> None:
    path = tmp_path / "p"
    log = ProgressLog([JsonProgress(path)])
    lines = [{"phase": "load"}, {"step": 10, "samples": 100, "loss": 3}, {"step": 20, "samples": 200}, {"loss": 2}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert len(log.read()) == 4
    assert (log.latest.step, log.latest.loss, log.latest.samples, log.latest.phase) == (20, 2.0, 200, "load")
    at = log.at(19)
    assert at is not None and at.samples == 100
    assert log.at(9) is None


def test_pattern_over_stdout(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("starting\nstep 5 | loss 1.25\nstep 6 | loss bad\n")
    reader = PatternProgress(path, r"step (?P<step>\d+) \| loss (?P<loss>\S+)")
    assert reader.read() == [Progress(step=5, loss=1.25), Progress(step=6)]


def test_hugging_face_history_is_told_once(tmp_path: Path) -> None:
    reader = HuggingFaceProgress(tmp_path)
    for step in (10, 20):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        history = [{"step": n, "loss": 5 - n / 10} for n in range(5, step + 1, 5)]
        (folder / "trainer_state.json").write_text(json.dumps({"global_step": step, "log_history": history}))
        assert [progress.step for progress in reader.read()] == ([5, 10] if step == 10 else [15, 20])
    assert reader.read() == []


def test_lightning_csv(tmp_path: Path) -> None:
    folder = tmp_path / "lightning_logs" / "version_0"
    folder.mkdir(parents=True)
    (folder / "metrics.csv").write_text("epoch,step,train_loss\n0,9,2.5\n0,19,\n")
    (ours := LightningProgress(tmp_path)).read()
    with (folder / "metrics.csv").open("a") as file:
        file.write("1,29,1.5\n")
    assert [(said.step, said.loss) for said in ours.read()] == [(29, 1.5)]


def test_all_sources_together(tmp_path: Path) -> None:
    assert len(progress_sources(tmp_path / "p", tmp_path / "l", tmp_path, "(?P<step>x)")) == 4


def test_booleans_and_infinities_are_no_numbers() -> None:
    assert parse_line('{"step": true, "loss": Infinity}') == Progress()
