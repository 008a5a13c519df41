// Other launchers' options: those that have no effect here, and those that are rejected with advice. The
// advice completes "mpiexec: -gdb: ".
#include "launch/option_table.h"

namespace near::launch {
namespace {

using base::Code;
using base::fail;

Result silently(Parsing&) { return {}; }

Result with_remark(Parsing& at) {
  at.command.remarks.push_back(base::format("{} has no effect here and is ignored", at.option));
  return {};
}

Result read_parameter(Parsing& at) { return use_mca_parameter(at, at.values[0], at.values[1]); }

// Lines "name = value", "--mca name value" or "-x NAME=VALUE", as Open MPI's --tune and --am read them.
// Without a file, Intel MPI's -tune selects its own tables, which do not exist here.
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
        return fail(Code::invalid, "{} {}: cannot interpret this line: {}", at.option, at.values[0], line);
      }
    }
  }
  return {};
}

Result need_no_gpus(Parsing& at) {
  if (at.values[0] == "0" || at.values[0] == "false") return {};
  return fail(Code::unsupported,
              "{} {}: buffers in GPU memory are not supported; copy them to host memory first", at.option,
              at.values[0]);
}

Result need_no_restarts(Parsing& at) {
  if (at.values[0] == "0") return {};
  return fail(Code::unsupported, "{} {}: mpiexec does not restart ranks: a rank that fails ends the job",
              at.option, at.values[0]);
}

Result need_no_fault_tolerance(Parsing& at) {
  for (const char* no : {"no", "none", "false", "0"})
    if (at.values[0] == no) return {};
  return fail(Code::unsupported,
              "{} {}: a job cannot continue after one of its ranks has failed; omit this option", at.option,
              at.values[0]);
}

Result choose_universe(Parsing& at) {
  if (at.values[0] == "SYSTEM") return {}; // MPI_UNIVERSE_SIZE always has this value
  return fail(Code::unsupported,
              "{} {}: MPI_UNIVERSE_SIZE is always the number of this machine's cores; omit this option",
              at.option, at.values[0]);
}

// "--runtime-options donotlaunch,..." of Open MPI's launchers.
Result choose_runtime(Parsing& at) {
  for (const auto& word : split(at.values[0], ',')) {
    if (word == "donotlaunch")
      at.command.explain = true;
    else if (word != "report-state-on-timeout" && word != "error-nonzero-status" &&
             word != "abort-nonzero-status")
      return fail(Code::unsupported, "{} {}: unknown word '{}'; mpiexec --help lists the options", at.option,
                  at.values[0], word);
  }
  return {};
}

const Option foreign_table[] = {
    // No effect on one machine, or already the behaviour here.
    {{"allow-run-as-root", "ordered-output", "silent-abort", "cleanup", "noconf", "novm", "preload-binary",
      "disable-hostname-propagation", "enable-x", "disable-x", "pmi-port", "hybrid-hosts",
      "report-state-on-timeout", "abort-on-non-zero-exit"},
     none,
     nullptr,
     silently},
    {{"launcher", "bootstrap", "bootstrap-exec-args", "rmk", "iface", "localhost", "order-nodes", "demux",
      "nameserver", "topolib", "branch-count", "tmpdir", "personality", "use-app-topology"},
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

constexpr const char* one_machine = "all ranks run on this machine; omit this option";
constexpr const char* no_network =
    "ranks on one machine communicate through memory, and NearMPI chooses the protocol; omit this option";
constexpr const char* debuggers =
    "to debug each rank in its own window, use mpiexec -n N xterm -e gdb --args program; to attach to a "
    "running rank, use gdb -p PID (-v shows the PIDs)";
constexpr const char* no_tool =
    "NearMPI does not include this tool; to run all ranks under another tool, use mpiexec -n N tool program; "
    "for some of the ranks, use -gtool \"tool:RANKS\"";
constexpr const char* goes_on = "a job cannot continue after one of its ranks has failed; omit this option";
constexpr const char* granted =
    "mpiexec uses the resources of this machine or of the batch job; request them with sbatch or salloc";

const Refusal refused[] = {
    {{"gdb", "gdba", "gdb-ia", "gdb-args", "debug", "debugger", "tv", "tva", "idb", "idba"}, debuggers},
    {{"xterm"},
     "to run each rank in its own window, use mpiexec -n N xterm -hold -e program; for rank 0 only, use "
     "mpiexec -n 1 xterm -hold -e program : -n M program"},
    {{"trace", "check_mpi", "aps", "mps", "trace-pt2pt", "trace-collectives", "trace-imbalance"}, no_tool},
    {{"nolocal", "skip-launch-node"}, "it excludes the only machine; omit this option"},
    {{"nodes-per-group", "hostos", "hosts-group", "rankmap", "localroot", "set-cwd-to-session-dir"},
     one_machine},
    {{"disable-auto-cleanup", "enable-recovery", "recoverable", "continuous", "no-abort-on-non-zero-exit"},
     goes_on},
    {{"prefix"},
     "ranks use the library of this mpiexec; to use another installation, start its mpiexec by its path"},
    {{"preload-files"}, "all ranks run on this machine, where the files already are; omit this option"},
    {{"report-uri"},
     "there is no daemon to connect to; tools such as near top --job PID find the job by the process ID of "
     "mpiexec, which --report-pid writes"},
    {{"index-argv-by-rank"},
     "to give each rank its own arguments, specify a program for each rank, separated by ':', or use "
     "$NEAR_RANK in a script"},
    {{"singleton"}, "a program that is started without mpiexec is a job of one rank; omit this option"},
    {{"gpus-per-proc", "gpu-subdevs-per-proc", "gpus-per-task", "gpus", "gpu-bind"},
     "mpiexec does not assign GPUs; choose one for each program: mpiexec -n 1 -env CUDA_VISIBLE_DEVICES 0 "
     "program : -n 1 -env CUDA_VISIBLE_DEVICES 1 program"},
    {{"save-pids"}, "-v shows the process IDs of the ranks, and --report-pid FILE writes that of mpiexec"},
    {{"logfile"}, "redirect standard error instead: append 2>FILE to the command"},
    {{"umask"}, "use mpiexec -n N sh -c 'umask 022; exec program'"},
    {{"fabrics", "ib", "psm", "psm2", "tcp", "dapl", "ofi", "mxm", "rdma"}, no_network},
    {{"ckpoint", "ckpoint-interval", "ckpoint-prefix"}, "checkpoints are not supported; omit this option"},
    // srun
    {{"t", "time"},
     "use --timeout SECONDS to limit the time, or --threads T to give each rank several cores"},
    {{"cpu-bind"}, "use --bind-to core, numa, package or none"},
    {{"mem-bind"},
     "a rank's memory comes from its own NUMA node; for another node, use mpiexec -n N numactl --membind=0 "
     "program"},
    {{"hint"},
     "each rank gets a whole core, or with --use-hwthread-cpus a hardware thread; omit this option"},
    {{"distribution", "m"}, "use --map-by core (block) or --map-by package (cyclic)"},
    {{"mpi"}, "mpiexec has only one way to start ranks; omit this option"},
    {{"export"},
     "ranks get the whole environment; use -x NAME=VALUE to set a variable, -genvlist A,B to pass on only A "
     "and B, or -genvnone to pass on nothing"},
    {{"E", "preserve-env"}, "ranks always get the whole environment; omit this option"},
    {{"cpus-per-task"}, "use --threads T to give each rank several cores"},
    {{"o"}, "use -outfile-pattern out.%r to write standard output to files (%r is the rank)"},
    {{"e", "error"}, "use -errfile-pattern err.%r to write standard error to files (%r is the rank)"},
    {{"i", "input"},
     "use -s all, -s none or -s 0,2-3 to choose the ranks that read standard input, and <FILE to read a "
     "file"},
    {{"open-mode"},
     "-outfile-pattern overwrites its files; to append, use mpiexec -n N sh -c 'exec program "
     ">>out.$NEAR_RANK'"},
    {{"D"}, "use -wdir DIRECTORY"},
    {{"multi-prog"}, "separate the programs by ':', or list them in a file for -configfile, one per line"},
    {{"exclusive", "overlap"},
     "your jobs avoid each other's cores unless you pass --oversubscribe; omit this option"},
    {{"kill-on-bad-exit", "K"}, "a rank that fails always ends the job; omit this option"},
    {{"wait", "W"},
     "a rank that ends successfully does not end the others; omit this option, or use --timeout SECONDS to "
     "limit the time"},
    {{"unbuffered", "u"}, "each line is forwarded as soon as the rank has written it; omit this option"},
    {{"propagate"}, "ranks always inherit the limits of the shell; omit this option"},
    {{"p", "partition", "gres", "mem", "mem-per-cpu", "constraint", "C", "A", "account", "qos",
      "reservation"},
     granted},
    {{"J", "job-name"},
     "jobs have no names: tools identify a job by the process ID of its mpiexec; omit this option"},
    {{"w"}, "use -host NAME, which must be this machine"},
    {{"threads-per-core"}, "each rank gets whole cores; use --use-hwthread-cpus to count hardware threads"},
    {{"ntasks-per-socket"}, "use --map-by ppr:N:package"},
    {{"ntasks-per-core"}, "use --map-by ppr:N:core"},
    {{"O"}, "use --oversubscribe to run more ranks than there are processors"},
    {{"pty"}, "a job of one rank uses the terminal directly; omit this option"},
};

} // namespace

OptionGroup foreign_options() {
  return {"foreign", "Options of other launchers without effect here", foreign_table};
}
std::span<const Refusal> refusals() { return refused; }

} // namespace near::launch
