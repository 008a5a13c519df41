"""The command line: spellings of options, environment, programs, error messages."""

import re

import harness
import pytest


def lines(result):
    return sorted(result.out.split("\n")[:-1])


@pytest.mark.parametrize("option", ["-n", "-np", "--np", "--n", "-c", "-N", "-ppn"])
def test_the_number_of_processes_has_many_spellings(launch, option):
    result = launch("--oversubscribe", option, "3", "echo", "here")
    assert (result.status, lines(result)) == (0, ["here"] * 3), result.report()


def test_without_a_number_there_is_one_process(launch):
    assert launch("echo", "here").out == "here\n"


def test_a_value_may_follow_an_equals_sign(launch):
    assert launch("--np=2", "echo", "here").out == "here\n" * 2


def test_options_after_the_program_belong_to_the_program(launch):
    assert launch("-n", "1", "echo", "-n", "x").out == "x"
    assert launch("-n", "1", "--", "echo", "a").out == "a\n"


def test_every_process_learns_rank_and_size(launch):
    result = launch("-n", "3", "--oversubscribe", "sh", "-c", "echo $NEAR_BOOT_RANK of $NEAR_BOOT_SIZE")
    assert lines(result) == ["0 of 3", "1 of 3", "2 of 3"]


def test_a_list_of_programs_is_one_job(launch):
    show = "echo $0 $NEAR_BOOT_RANK $NEAR_BOOT_SIZE $NEAR_BOOT_APPLICATION"
    result = launch("--oversubscribe", "-n", "2", "sh", "-c", show, "a", ":", "-n", "1", "sh", "-c", show, "b")
    assert lines(result) == ["a 0 3 0", "a 1 3 0", "b 2 3 1"]


@pytest.mark.parametrize("options, value", [
    (["-x", "COLOR=blue"], "blue"),
    (["-x", "COLOR"], "green"),
    (["-env", "COLOR", "blue"], "blue"),
    (["-genv", "COLOR", "blue"], "blue"),
    (["-genv", "COLOR=blue"], "blue"),
    (["-genvall"], "green"),
    (["-genvlist", "COLOR,PATH"], "green"),
    (["-genvnone", "-x", "COLOR=red"], "red"),
    (["-genvnone"], ""),
    (["-genv", "COLOR", "blue", "-env", "COLOR", "red"], "red"),
])
def test_variables_are_passed_on(launch, options, value):
    result = launch("-n", "1", *options, "/bin/sh", "-c", "echo $COLOR", env={"COLOR": "green"})
    assert (result.status, result.out) == (0, value + "\n"), result.report()


def test_env_belongs_to_one_program_and_genv_to_all(launch):
    show = ["sh", "-c", "echo $A $B"]
    result = launch("-n", "1", "-genv", "A", "1", "-env", "B", "2", *show, ":", "-n", "1", *show)
    assert lines(result) == ["1", "1 2"]


@pytest.mark.parametrize("option", ["-wdir", "--wdir", "-wd"])
def test_the_working_directory_can_be_chosen(launch, option, tmp_path):
    assert launch("-n", "1", option, tmp_path, "pwd").out == f"{tmp_path}\n"


def test_a_program_in_the_working_directory_needs_no_path(launch, tmp_path):
    program = tmp_path / "only-here"
    program.write_text("echo found\n")  # a shell script without "#!"
    program.chmod(0o755)
    assert launch("only-here", cwd=tmp_path).out == "found\n"
    assert launch("-wdir", tmp_path, "only-here").out == "found\n"


def test_options_without_a_meaning_are_accepted(launch):
    result = launch("--allow-run-as-root", "-host", "localhost", "-iface", "lo", "-n", "1", "echo", "a")
    assert (result.status, result.out, result.err) == (0, "a\n", "")
    result = launch("--mca", "btl", "self", "-n", "1", "echo", "a")
    assert (result.out, result.err) == ("a\n", "")
    result = launch("--mca", "mpi_abort_delay", "5", "-n", "1", "echo", "a")
    assert result.out == "a\n" and "--mca mpi_abort_delay: there is no such parameter here" in result.err


@pytest.mark.parametrize("words", ["map", "bind", "map,bind"])
def test_display_means_the_bindings(launch, words):
    result = launch("-n", "1", "--display", words, "true")
    assert result.status == 0 and "rank 0: " in result.err, result.report()


@pytest.mark.parametrize("option, value, says", [
    ("--display", "foo", "expected map, bind, allocation or topo"),
    ("-configfile", "no-such-file", "cannot read the file 'no-such-file'"),
    ("-outfile-pattern", "out.%t", "unknown escape '%t'; %r is the rank"),
    ("--stdin", "some", "expected all, none, or ranks"),
    ("--prefix", "/opt/mpi", "by its path"),
    ("-genv", "COLOR", "use -genv COLOR=-n"),
    ("-env", "COLOR", "use -env COLOR=-n"),
])
def test_an_unsupported_option_names_an_alternative(launch, option, value, says):
    result = launch(option, value, "-n", "1", "echo", "started")
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1) and says in result.err, result.report()


def test_input_for_rank_0_is_the_default(launch):
    assert launch("--stdin", "0", "-n", "1", "cat", input="hello").out == "hello"


def test_missing_kinds_of_memory_cause_a_remark(launch):
    assert launch("-memory-alloc-kinds", "mpi:alloc_mem,system", "-n", "1", "true").err == ""
    result = launch("--memory-alloc-kinds", "system,cuda:device", "-n", "1", "true")
    assert result.status == 0 and "mpi and system only, not cuda:device" in result.err, result.report()


def test_a_variables_value_may_begin_with_a_dash(launch):
    assert launch("-n", "1", "-genv", "COLOR=-n", "printenv", "COLOR").out == "-n\n"
    assert launch("-n", "1", "-genv", "COLOR", "-O2", "printenv", "COLOR").out == "-O2\n"


def test_a_machine_that_is_not_there_is_named(launch):
    result = launch("-host", "far-away.invalid,localhost", "-n", "2", "true")
    assert result.status == 1 and "machine far-away.invalid: ssh ended with status 255" in result.err, result.report()


@pytest.mark.parametrize("mistake, advice", [
    (["--bind-too", "core"], "did you mean --bind-to?"),
    (["--reprot-bindings"], "did you mean --report-bindings?"),
    (["-gennv", "A", "1"], "did you mean -genv?"),
    (["--bind-to", "coer"], "did you mean core?"),
    (["--map-by", "packge"], "did you mean package?"),
    (["-n", "zero"], "expected a number"),
    (["-n", "0"], "expected a number"),
    (["--timeout", "soon"], "number of seconds"),
    (["-n"], "missing"),
])
def test_a_mistake_is_named_with_advice(launch, mistake, advice):
    result = launch(*mistake, *([] if mistake == ["-n"] else ["true"]))
    assert result.status == 2 and advice in result.err, result.report()
    assert result.err.count("\n") == 1


def test_an_unknown_knob_is_named_with_the_nearest(launch):
    for options, env in ([], {"NEAR_SPINN": "1"}), (["-x", "NEAR_SPINN=1"], {}):
        result = launch(*options, "true", env=env)
        assert result.status == 2 and "NEAR_SPINN; did you mean NEAR_SPIN?" in result.err, result.report()


@pytest.mark.parametrize("setting, says", [
    ("NEAR_PACKETS=1", "NEAR_PACKETS=1: expected a number from 16 to 1048576"),
    ("NEAR_QUEUE_SLOTS=99999999999", "expected a number from 4 to 1048576"),
    ("NEAR_LOG=loud", "expected error, warning, note or debug"),
    ("NEAR_FOO=1", "unknown knob NEAR_FOO; `near info --knobs`"),
])
def test_a_knobs_value_is_checked_before_any_rank_starts(launch, setting, says):
    result = launch("-n", "4", "--oversubscribe", "-x", setting, "echo", "started")
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1) and says in result.err, result.report()


@pytest.mark.parametrize("setting, says", [("NEAR_COPY=pipelned", "did you mean pipelined"),
                                           ("NEAR_COLL=allreduce=rnig", "did you mean ring")])
def test_a_knob_that_only_the_library_knows_is_reported_once(launch, compiled, setting, says):
    result = launch("-n", "4", "--oversubscribe", "-x", setting, compiled("end_badly"), "well")
    assert result.status != 0 and says in result.err and result.err.count("\n") == 1, result.report()


def test_no_program_is_an_error(launch):
    for arguments in [], ["-n", "2"], ["true", ":"]:
        result = launch(*arguments)
        assert result.status == 2 and "no program" in result.err


def test_a_missing_program_is_named(launch):
    for program in "no-such-program", "./no-such-program":
        result = launch("-n", "2", program)
        assert result.status == 127 and program in result.err and result.err.count("\n") == 1, result.report()


def test_a_missing_program_of_a_list_ends_the_others(launch):
    result = launch("-n", "1", "sleep", "100", ":", "-n", "1", "no-such-program")
    assert result.status == 127 and result.seconds < 30


def test_help_and_version(launch):
    assert "--bind-to" in launch("--help").out
    assert re.search(r"NearMPI\) \d+\.\d+", launch("--version").out)


def test_the_manual_knows_every_option(launch):
    manual = (harness.ROOT / "doc/man/mpiexec.1").read_text().replace("\\-", "-")
    everything = launch("--help", "all").out.partition("One dash")[0]
    options = set(re.findall(r"(?:(?<=^ )|(?<=  )|(?<=, )|(?<= ))-{1,2}([a-zA-Z][a-zA-Z_-]*)", everything, re.MULTILINE))
    assert len(options) > 200
    missing = {option for option in options if not re.search(rf"(?<![a-zA-Z-])-{{1,2}}{option}(?![a-zA-Z_-])", manual)}
    assert not missing


def test_help_describes_one_group_or_option(launch):
    assert "--genvlist" in launch("--help", "environment").out and "--map-by" not in launch("--help", "environment").out
    assert launch("--help", "--genvnone").out.count("\n") == 1
    assert "xterm -e gdb" in launch("--help", "gdb").out
    assert max(len(line) for line in launch("--help").out.splitlines()[:-3]) < 120


def test_mpirun_is_the_same_program(prefix, nothing_left):
    assert nothing_left([prefix / "bin/mpirun", "-n", "2", "echo", "a"]).out == "a\na\n"


def test_it_works_without_any_network(prefix, nothing_left):
    result = nothing_left(["unshare", "-rn", prefix / "bin/mpiexec", "-n", "2", "echo", "a"])
    if "unshare" in result.err:
        pytest.skip("this machine lets nobody make a network namespace")
    assert (result.status, result.out) == (0, "a\na\n"), result.report()


@pytest.mark.parametrize("text, says", [
    ("-n 1 echo a\n-n 1 echo b \\", "ab"),
    ("-n 1 echo a\n-n 1 echo b \\\n", "ab"),
    ("# folders: C:\\\n-n 1 echo a\n", "a"),
    ("-n 1 echo a # who's there\n-n 1 echo b\n", "ab"),
    ("-n 1 echo a #\\\n-n 1 echo b\n", "a"),
    ("-n 1 echo '#a' \\#b c#d\n", "#a #b c#d"),
])
def test_lines_of_a_file_of_programs_end_and_are_left_out(launch, tmp_path, text, says):
    (tmp_path / "programs").write_text(text)
    result = launch("--oversubscribe", "-configfile", tmp_path / "programs")
    assert (result.status, "".join(lines(result))) == (0, says), result.report()


@pytest.mark.parametrize("option", ["--tune", "--am", "-am"])
def test_a_file_of_parameters_is_never_started(launch, tmp_path, option):
    program = tmp_path / "settings"
    for text in (None, "#!/bin/sh\necho started\n"):  # the file is missing, or executable
        if text:
            program.write_text(text)
            program.chmod(0o755)
        result = launch(option, program, "-n", "1", "echo", "started")
        wanted = f"{option} {program}: cannot interpret this line" if text else f"{option}: cannot read the file '{program}'"
        assert result.status == 2 and result.out == "" and wanted in result.err, result.report()


@pytest.mark.parametrize("seconds", ["-1", "0", "-0.5", "60"])
def test_a_timeout_that_is_not_positive_sets_no_limit(launch, seconds):
    result = launch("-n", "1", "echo", "here", env={"MPIEXEC_TIMEOUT": seconds})
    assert (result.status, result.out, result.err) == (0, "here\n", ""), result.report()


@pytest.mark.parametrize("seconds", ["0x10", "1e99", "nan", "soon"])
def test_seconds_are_decimal(launch, seconds):
    for result in (launch("-n", "1", "--timeout", seconds, "true"), launch("-n", "1", "true", env={"MPIEXEC_TIMEOUT": seconds})):
        assert result.status == 2 and "a number of seconds" in result.err, result.report()


def test_a_list_of_processors_may_have_ranges(launch, tmp_path):
    (tmp_path / "machine").write_text("package:1 core:4 pu:1")

    def plan(processors):
        result = launch("-machine", "machine", "--explain", "-genv", f"I_MPI_PIN_PROCESSOR_LIST={processors}", "-n", "3",
                        "true", cwd=tmp_path)
        assert (result.status, result.err) == (0, ""), result.report()
        return [line for line in result.out.splitlines() if line.startswith("rank ")]

    assert len(plan("3,1-2")) == 3 and plan("3,1-2") == plan("3,1,2") != plan("1,2,3")
    result = launch("-n", "1", "-genv", "I_MPI_PIN_PROCESSOR_LIST=2-1", "true")
    assert result.status == 2 and "expected processors" in result.err, result.report()


@pytest.mark.parametrize("tools, says", [
    ("strace -c", "'strace -c': the ranks are missing; expected COMMAND:RANKS"),
    ("strace:", "is not a list of ranks"),
    ("strace:x", "is not a list of ranks"),
    ("strace:0-", "is not a list of ranks"),
    ("strace:3-1", "is not a list of ranks"),
    (":0", "the command is missing"),
    ("env:0;:1", "':1': the command is missing"),
    ("'env:0", "a quote is not closed"),
    ("env:2", "there is no rank 2, the ranks are 0 to 1"),
    ("env:0=foo", "the mode 'foo' is not supported here"),
    ("env:0,1=exclusive", "the mode 'exclusive' is not supported here"),
])
def test_an_error_in_a_list_of_tools_is_named(launch, tmp_path, tools, says):
    (tmp_path / "tools").write_text(tools.replace(";", "\n"))
    for option, value in ("-gtool", tools), ("-gtoolfile", "tools"):
        result = launch("-n", "2", option, value, "echo", "started", cwd=tmp_path)
        assert (result.status, result.out, result.err.count("\n")) == (2, "", 1), result.report()
        assert says in result.err and "mpiexec: -gtool" in result.err, result.report()


def test_a_missing_tool_is_named(launch):
    result = launch("-n", "2", "-gtool", "no-such-tool:1", "true")
    assert result.status == 127 and "no-such-tool" in result.err and result.err.count("\n") == 1, result.report()


@pytest.mark.parametrize("text, says", [
    ("-n 1 echo a\n--bind-too core -n 1 echo b\n", "programs:2: unknown option --bind-too; did you mean --bind-to?"),
    ("# one\n\n-n 1 \\\necho a\n-n zero echo b\n", "programs:5: -n zero: expected a number"),
    ("-n 1 echo a\n-n\n", "programs:2: -n: a value is missing after it"),
    ("-n 1 \\\n-n 2 echo a\n", "programs:1: -n 2: -n 1 says already how many processes"),
    ("-n 1 echo 'a\n", "programs:1: a quote is not closed"),
    ("-n 1\n-n 1 echo a\n", "programs:1: no program to start"),
    ("-n 1 echo a : -n 1\n", "programs:1: no program to start"),
    ("-n 1 -configfile programs echo a\n", "programs:1: -configfile programs: a file of programs cannot name another one"),
    ("# nothing\n\n", "no line of the file names a program"),
    ("", "no line of the file names a program"),
])
def test_an_error_in_a_file_of_programs_is_named_with_its_line(launch, tmp_path, text, says):
    (tmp_path / "programs").write_text(text)
    result = launch("--oversubscribe", "-configfile", "programs", cwd=tmp_path)
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1) and says in result.err, result.report()


@pytest.mark.parametrize("rest", [["-n", "2"], ["echo", "b"]])
def test_a_file_of_programs_says_all_of_what_is_started(launch, tmp_path, rest):
    (tmp_path / "programs").write_text("-n 1 echo a\n")
    result = launch("-configfile", "programs", *rest, cwd=tmp_path)
    assert (result.status, result.out) == (2, "") and "the file of -configfile says what is started" in result.err, result.report()


@pytest.mark.parametrize("name, says", [
    ("script.py", "a script that is not executable: use mpiexec -n N python3 {}"),
    ("script.jl", "a script that is not executable: use mpiexec -n N julia {}"),
    ("hello.c", "compile it first, mpicc {} -o "),
    ("hello", " is not executable: chmod +x {}"),
])
@pytest.mark.parametrize("before", ["", "./", "{here}/"])
def test_a_file_that_is_not_executable_says_what_to_do(launch, tmp_path, name, says, before):
    (tmp_path / name).write_text("print('started')\n")
    program = before.replace("{here}", str(tmp_path)) + name
    for options in ([], ["-wdir", tmp_path]):
        result = launch("-n", "2", *options, program, cwd=tmp_path)
        assert (result.status, result.out, result.err.count("\n")) == (127, "", 1), result.report()
        assert says.format(program) in result.err, result.report()


@pytest.mark.parametrize("name, says", [
    ("script.py", "the working directory's file of that name is a script that is not executable: "),
    ("hello.c", "the working directory's file of that name is source text: "),
    ("hello", "the working directory's file of that name is not executable: "),
    ("folder", "the working directory has a folder of that name\n"),
])
def test_a_file_that_is_not_executable_is_not_called_missing(launch, tmp_path, name, says):
    (tmp_path / "folder").mkdir()
    if name != "folder":
        (tmp_path / name).write_text("print('started')\n")
    result = launch("-n", "1", name, cwd=tmp_path)
    begins = f"cannot run '{name}': no program of that name is in PATH or in the working directory; {says}"
    assert (result.status, result.out) == (127, "") and begins in result.err, result.report()


def test_the_advice_about_a_script_works(launch, tmp_path):
    (tmp_path / "script.py").write_text("print('started')\n")
    refused = launch("-n", "2", "script.py", cwd=tmp_path)
    words = refused.err.partition("use mpiexec -n N ")[2].split()
    result = launch("-n", "2", *words, cwd=tmp_path)
    assert (result.status, result.out) == (0, "started\n" * 2), result.report()


# ---- output files given twice -------------------------------------------------------------------------------

@pytest.mark.parametrize("words, says", [
    ("-n 1 --output-filename a echo A : -n 1 --output-filename b echo B",
     "--output-filename b: --output-filename a says already to which files standard output goes"),
    ("-n 1 --output-filename f --output-filename g echo A", "--output-filename g: --output-filename f says already"),
    ("-n 1 --output dir=d,file=e echo A", "--output file=e: --output dir=d says already"),
    ("-n 1 --output-directory d --output-filename d echo A", "--output-filename d: --output-directory d says already"),
    ("-n 1 -outfile-pattern a.%r echo A : -n 1 -outfile b.%r echo B", "-outfile b.%r: -outfile-pattern a.%r says already"),
    ("-n 1 --output-filename a -errfile-pattern b.%r echo A",
     "-errfile-pattern b.%r: --output-filename a says already to which files standard error goes"),
    ("-n 1 --output-filename f:copy,nocopy echo A", "--output-filename f:copy,nocopy: copy and nocopy contradict each other"),
    ("-n 1 --output dir=f:nocopy:copy echo A", "--output f:nocopy:copy: copy and nocopy contradict each other"),
])
def test_a_second_name_of_files_for_the_output_is_an_error(launch, tmp_path, words, says):
    result = launch("--oversubscribe", *words.split(), cwd=tmp_path)
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1) and says in result.err, result.report()
    assert not list(tmp_path.iterdir())


def test_one_name_of_files_for_the_output_may_be_given_with_each_program(launch, tmp_path):
    section = ["-n", "1", "--output-filename", "all:nocopy", "sh", "-c", "echo $NEAR_RANK"]
    result = launch("--oversubscribe", *section, ":", *section, cwd=tmp_path)
    assert (result.status, result.out, result.err) == (0, "", ""), result.report()
    assert [(tmp_path / f"all.{rank}.out").read_text() for rank in (0, 1)] == ["0\n", "1\n"]


def test_the_streams_may_have_files_by_options_of_their_own(launch, tmp_path):
    result = launch("-n", "1", "-outfile-pattern", "o.%r", "-errfile-pattern", "e.%r", "sh", "-c", "echo a; echo b >&2", cwd=tmp_path)
    assert (result.status, result.out, result.err) == (0, "", ""), result.report()
    assert ((tmp_path / "o.0").read_text(), (tmp_path / "e.0").read_text()) == ("a\n", "b\n")


@pytest.mark.parametrize("words", ["--output tag,file=f", "--output timestamp,dir=d:copy", "-l -outfile-pattern o.%r"])
def test_marked_lines_in_files_are_refused_with_the_option_that_separates_ranks(launch, tmp_path, words):
    result = launch("-n", "1", *words.split(), "echo", "A", cwd=tmp_path)
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1), result.report()
    assert "give each rank its own file (-outfile-pattern out.%r)" in result.err, result.report()
