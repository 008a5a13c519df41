// Options of other launchers: those that have no effect here, and those that are refused with advice. The
// advice completes "mpiexec: -gdb: ".
#include "launch/option_table.h"

namespace near::launch {
namespace {

using base::Code;
using base::fail;

Result silently(Parsing&) { return {}; }

Result with_remark(Parsing& at) {
  at.command.remarks.push_back(base::format("{} has no meaning here and is ignored", at.option));
  return {};
}

Result read_parameter(Parsing& at) { return use_mca_parameter(at, at.values[0], at.values[1]); }

// Lines "name = value", "--mca name value" or "-x NAME=VALUE", as Open MPI's --tune and --am read them.
// Intel MPI's -tune without a file asks for its own tables, which are not here.
Result read_parameter_file(Parsing& at) {
  if (at.values.empty()) return {};
  std::string text;
  NEAR_TRY(read_named_file(at, at.values[0], text));
  for (auto line : split(text, '\n')) {
    line = line.substr(0, line.find('#'));
    for (auto& letter : line)
      if (letter == '\t' || letter == '\r' || letter == '"') letter = ' ';
    std::vector<std::string> words;
    for (auto& word : split(line, ' '))
      if (!word.empty()) words.push_back(std::move(word));
    for (std::size_t i = 0; i < words.size();) {
      const auto& word = words[i];
      auto left = words.size() - i;
      if ((word == "-mca" || word == "--mca") && left >= 3) {
        NEAR_TRY(use_mca_parameter(at, words[i + 1], words[i + 2]));
        i += 3;
      } else if (word == "-x" && left >= 2) {
        NEAR_TRY(export_variables(at, words[i + 1]));
        i += 2;
      } else if (left >= 2 && words[i + 1] == "=") {
        std::string value;
        for (std::size_t k = i + 2; k < words.size(); ++k) value += (value.empty() ? "" : " ") + words[k];
        NEAR_TRY(use_mca_parameter(at, word, value));
        break;
      } else if (auto equals = word.find('='); equals != std::string::npos && equals > 0) {
        NEAR_TRY(use_mca_parameter(at, word.substr(0, equals), word.substr(equals + 1)));
        ++i;
      } else {
        return fail(Code::invalid, "{} {}: not understood: {}", at.option, at.values[0], line);
      }
    }
  }
  return {};
}

Result need_no_gpus(Parsing& at) {
  if (at.values[0] == "0" || at.values[0] == "false") return {};
  return fail(Code::unsupported,
              "{} {}: buffers on GPUs are not supported; copy them to the host's memory first", at.option,
              at.values[0]);
}

Result need_no_restarts(Parsing& at) {
  if (at.values[0] == "0") return {};
  return fail(Code::unsupported, "{} {}: processes are not started again; a rank that fails ends the job",
              at.option, at.values[0]);
}

Result need_no_fault_tolerance(Parsing& at) {
  for (const char* no : {"no", "none", "false", "0"})
    if (at.values[0] == no) return {};
  return fail(Code::unsupported,
              "{} {}: a job does not continue without a rank: a rank that fails ends it; leave it out",
              at.option, at.values[0]);
}

Result choose_universe(Parsing& at) {
  if (at.values[0] == "SYSTEM") return {}; // MPI_UNIVERSE_SIZE is that anyway
  return fail(Code::unsupported,
              "{} {}: MPI_UNIVERSE_SIZE is the number of the machine's cores here; leave it out", at.option,
              at.values[0]);
}

// "--runtime-options donotlaunch,..." of Open MPI's launchers.
Result choose_runtime(Parsing& at) {
  for (const auto& word : split(at.values[0], ',')) {
    if (word == "donotlaunch")
      at.command.explain = true;
    else if (word != "report-state-on-timeout" && word != "error-nonzero-status" &&
             word != "abort-nonzero-status")
      return fail(Code::unsupported, "{} {}: '{}' is not known here; mpiexec --help lists the options",
                  at.option, at.values[0], word);
  }
  return {};
}

const Option table[] = {
    // Without effect on one machine, or the behaviour here anyway.
    {{"allow-run-as-root", "rr", "bynode", "ordered-output", "silent-abort", "cleanup", "noconf", "novm",
      "preload-binary", "disable-hostname-propagation", "enable-x", "disable-x", "pmi-port", "hybrid-hosts",
      "report-state-on-timeout", "abort-on-non-zero-exit"},
     none,
     nullptr,
     silently},
    {{"launcher", "launcher-exec", "bootstrap", "bootstrap-exec", "bootstrap-exec-args", "rmk", "iface",
      "localhost", "order-nodes", "demux", "nameserver", "topolib", "branch-count", "tmpdir", "personality",
      "use-app-topology"},
     one,
     nullptr,
     silently},
    {{"arch", "soft"}, one, nullptr, with_remark},
    {{"profile", "get-stack-traces", "prot"}, none, nullptr, with_remark},
    {{"mca", "gmca", "omca", "pmixmca", "gpmixmca", "prtemca"}, two, nullptr, read_parameter},
    {{"tune", "am"}, file_or_nothing, nullptr, read_parameter_file},
    {{"gpu-support"}, one, nullptr, need_no_gpus},
    {{"max-restarts"}, one, nullptr, need_no_restarts},
    {{"with-ft"}, one, nullptr, need_no_fault_tolerance},
    {{"usize"}, one, nullptr, choose_universe},
    {{"runtime-options", "rtos"}, one, nullptr, choose_runtime},
};

constexpr const char* one_machine = "all ranks run on this machine; leave it out";
constexpr const char* no_network =
    "messages inside a machine use no network, and NearMPI chooses how they travel; "
    "leave it out";
constexpr const char* debuggers =
    "one debugger in a window for each rank is mpiexec -n N xterm -e gdb --args "
    "program; one for a running rank is gdb -p PID, and -v shows the PIDs";
constexpr const char* no_tool =
    "that tool does not come with NearMPI; start ranks under one of your own with "
    "mpiexec -n N tool program, or some of them with -gtool \"tool:RANKS\"";
constexpr const char* goes_on =
    "a job does not continue without a rank: a rank that fails ends it; leave it out";
constexpr const char* granted =
    "mpiexec runs on what this machine or the batch job grants; ask sbatch or salloc for it";

const Refusal refused[] = {
    {{"gdb", "gdba", "gdb-ia", "gdb-args", "debug", "debugger", "tv", "tva", "idb", "idba"}, debuggers},
    {{"xterm"},
     "each rank in a window of its own is mpiexec -n N xterm -hold -e program; one of them is mpiexec -n 1 "
     "xterm "
     "-hold -e program : -n M program"},
    {{"trace", "check_mpi", "aps", "mps", "trace-pt2pt", "trace-collectives", "trace-imbalance"}, no_tool},
    {{"nolocal", "skip-launch-node"}, "it leaves out the only machine; remove it"},
    {{"nodes-per-group", "hostos", "hosts-group", "rankmap", "localroot", "set-cwd-to-session-dir"},
     one_machine},
    {{"disable-auto-cleanup", "enable-recovery", "recoverable", "continuous", "no-abort-on-non-zero-exit"},
     goes_on},
    {{"prefix"},
     "processes run with the library that belongs to this mpiexec; start the mpiexec of the installation "
     "that is "
     "meant by its path"},
    {{"preload-files"}, "programs run on this machine, which has the files; leave it out"},
    {{"report-uri"},
     "there is no daemon to connect to; tools find the job by mpiexec's process number, which --report-pid "
     "writes "
     "(near top --job PID)"},
    {{"index-argv-by-rank"},
     "write a program for each rank, with ':' between them, or use $NEAR_BOOT_RANK in a script"},
    {{"singleton"}, "a program that is started without mpiexec is a job of one process; leave it out"},
    {{"gpus-per-proc", "gpu-subdevs-per-proc", "gpus-per-task", "gpus", "gpu-bind"},
     "GPUs are not assigned here; set them for each program: mpiexec -n 1 -env CUDA_VISIBLE_DEVICES 0 "
     "program : "
     "-n 1 -env CUDA_VISIBLE_DEVICES 1 program"},
    {{"save-pids"}, "-v shows the processes' numbers, and --report-pid FILE writes mpiexec's own"},
    {{"logfile"}, "write 2>FILE after the command"},
    {{"umask"}, "write mpiexec -n N sh -c 'umask 022; exec program'"},
    {{"fabrics", "ib", "psm", "psm2", "tcp", "dapl", "ofi", "mxm", "rdma"}, no_network},
    {{"ckpoint", "ckpoint-interval", "ckpoint-prefix"}, "there are no checkpoints here; leave it out"},
    // srun
    {{"t", "time"}, "a time limit is --timeout SECONDS here, and cores for each process are --threads T"},
    {{"cpu-bind"}, "binding is --bind-to core, numa, package or none here"},
    {{"mem-bind"},
     "memory comes from the process's own node; otherwise mpiexec -n N numactl --membind=0 program"},
    {{"hint"}, "each rank gets a core (--use-hwthread-cpus: a hardware thread); leave it out"},
    {{"distribution", "m"}, "the order of ranks is --map-by core (block) or --map-by package (cyclic) here"},
    {{"mpi"}, "mpiexec starts processes in its own way only; leave it out"},
    {{"export"},
     "the whole environment is passed on; write -x NAME=VALUE to set a variable, -genvlist A,B to pass "
     "on only these, -genvnone for none"},
    {{"E", "preserve-env"}, "the whole environment is always passed on; leave it out"},
    {{"cpus-per-task"}, "cores for each process are --threads T here"},
    {{"o"}, "output to a file is -outfile-pattern out.%r here (%r is the rank)"},
    {{"e", "error"}, "standard error to a file is -errfile-pattern err.%r here (%r is the rank)"},
    {{"i", "input"},
     "the ranks that read standard input are given by -s all, -s none or -s 0,2-3 here, and a file by <FILE"},
    {{"open-mode"},
     "files of -outfile-pattern are overwritten; to append write mpiexec -n N sh -c 'exec program "
     ">>out.$NEAR_BOOT_RANK'"},
    {{"D"}, "the working directory is -wdir DIRECTORY here"},
    {{"multi-prog"}, "write the programs with ':' between them, or a line each in a file for -configfile"},
    {{"exclusive", "overlap"},
     "jobs of one user avoid each other's cores by themselves, unless --oversubscribe "
     "is given; leave it out"},
    {{"kill-on-bad-exit", "K"}, "a rank that fails always ends the job; leave it out"},
    {{"wait", "W"},
     "a rank that ends successfully does not end the others; leave it out, or give the job a --timeout"},
    {{"unbuffered", "u"}, "a line is passed on as soon as the program writes it; leave it out"},
    {{"propagate"}, "the limits of the shell always apply to the ranks; leave it out"},
    {{"p", "partition", "gres", "mem", "mem-per-cpu", "constraint", "C", "A", "account", "qos",
      "reservation"},
     granted},
    {{"J", "job-name"}, "jobs have no names here, tools know them by mpiexec's process number; leave it out"},
    {{"w"}, "a machine is named by -host NAME here, and must be this one"},
    {{"threads-per-core"}, "each rank gets whole cores; --use-hwthread-cpus counts hardware threads instead"},
    {{"ntasks-per-socket"}, "write --map-by ppr:N:package"},
    {{"ntasks-per-core"}, "write --map-by ppr:N:core"},
    {{"O"}, "if more processes than processors are intended, write --oversubscribe"},
    {{"pty"}, "a job of one process has the terminal itself; leave it out"},
};

} // namespace

OptionGroup foreign_options() { return {"foreign", "Options of other launchers without effect here", table}; }
std::span<const Refusal> refusals() { return refused; }

} // namespace near::launch
