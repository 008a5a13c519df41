"""Calls every implemented function with every kind of wrong argument: right error class, no crash."""

import sys

import harness


def test_every_wrong_argument_raises_its_class(compile_c, tmp_path, nothing_left):
    source = tmp_path / "invalid.c"
    result = harness.run([sys.executable, harness.ROOT / "gen/generate.py", "invalid", source])
    assert result.status == 0, result.report()
    program = compile_c(source, flags=("-w", "-O0"))
    result = nothing_left([program], timeout=120)
    assert result.status == 0, result.report()
    cases = int(result.out.splitlines()[-1].split()[0])
    assert cases > 3000, result.report()
