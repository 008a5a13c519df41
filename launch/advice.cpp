#include "launch/advice.h"

#include "base/result.h"

#include <filesystem>

namespace near::launch {
namespace {

struct AdviceKind {
  const char* ending;
  const char* form; ///< what to write instead; {} is the file
};
// Scripts are run by an interpreter, sources are compiled first.
constexpr AdviceKind scripts[] = {{".py", "python3"}, {".jl", "julia"}, {".sh", "sh"},   {".R", "Rscript"},
                                  {".pl", "perl"},    {".rb", "ruby"},  {".lua", "lua"}, {".m", "octave"}};
constexpr AdviceKind sources[] = {{".c", "mpicc"}, {".cpp", "mpicxx"}, {".cc", "mpicxx"}, {".cxx", "mpicxx"}};

} // namespace

std::string advice_on(const std::string& program, const std::string& directory) {
  namespace files = std::filesystem;
  std::error_code none;
  files::path written(program);
  bool named = program.find('/') != std::string::npos;
  auto file = directory.empty() ? written : files::path(directory) / written;
  if (!files::exists(file, none)) return {};
  if (files::is_directory(file, none))
    return named ? "; it is a folder" : "; the working directory has a folder of that name";
  if (!files::is_regular_file(file, none)) return {};
  constexpr auto executable = files::perms::owner_exec | files::perms::group_exec | files::perms::others_exec;
  if ((files::status(file, none).permissions() & executable) != files::perms::none) return {};
  const char* it = named ? "it" : "the working directory's file of that name";
  for (const auto& kind : scripts)
    if (written.extension() == kind.ending)
      return base::format("; {} is a script that is not executable: use mpiexec -n N {} {}", it, kind.form,
                          program);
  for (const auto& kind : sources)
    if (written.extension() == kind.ending)
      return base::format("; {} is source text: compile it first, {} {} -o {}", it, kind.form, program,
                          files::path(written).replace_extension().string());
  return base::format("; {} is not executable: chmod +x {}", it, program);
}

} // namespace near::launch
