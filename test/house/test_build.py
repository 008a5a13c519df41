"""How CMake handles build types; compiles nothing."""

import pytest
from harness import ROOT, run


@pytest.mark.parametrize("options, lto", [
    ([], "ON"),
    (["-DCMAKE_BUILD_TYPE=Release"], "ON"),
    (["-DCMAKE_BUILD_TYPE=RelWithDebInfo"], "OFF"),
    (["-DCMAKE_BUILD_TYPE=Debug"], "OFF"),
    (["-DCMAKE_BUILD_TYPE=Release", "-DNEAR_LTO=OFF"], "OFF"),
])
def test_a_release_is_optimised_at_the_link(tmp_path, options, lto):
    result = run(["cmake", "-S", ROOT, "-B", tmp_path, "-G", "Ninja", "-DNEAR_TESTS=OFF", *options])
    assert result.status == 0, result.report()
    cache = (tmp_path / "CMakeCache.txt").read_text().splitlines()
    assert f"NEAR_LTO:BOOL={lto}" in cache
    commands = (tmp_path / "compile_commands.json").read_text()
    assert ("-flto" in commands) == (lto == "ON")
