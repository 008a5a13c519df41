#include "launch/linkage.h"

#include "base/text.h"
#include "boot/boot.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <elf.h>
#include <filesystem>
#include <fstream>

namespace near::launch {
namespace {

// The file is not trusted: these limits bound what is read.
constexpr std::size_t most_headers = 512;
constexpr std::uint64_t most_dynamic_bytes = 1u << 20;
constexpr std::size_t most_libraries = 1024;
constexpr std::size_t longest_name = 4096; // a library may be required by its path

class File {
public:
  explicit File(const std::string& path) {
    // Opening a named pipe would block, and a device may do anything.
    std::error_code none;
    if (std::filesystem::is_regular_file(path, none)) file_.open(path, std::ios::binary);
  }
  /// Returns false if the file does not have that many bytes there.
  bool read(std::uint64_t at, void* to, std::size_t bytes) {
    if (!file_.is_open() || at > std::uint64_t{INT64_MAX} - bytes) return false;
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(at));
    file_.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
    return file_.good() && static_cast<std::size_t>(file_.gcount()) == bytes;
  }
  /// The zero-terminated text at this offset; "" if there is none of reasonable length.
  std::string text(std::uint64_t at) {
    char buffer[longest_name] = {};
    if (!file_.is_open() || at > std::uint64_t{INT64_MAX}) return {};
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(at));
    file_.read(buffer, sizeof buffer);
    auto got = static_cast<std::size_t>(std::max<std::streamsize>(file_.gcount(), 0));
    auto length = strnlen(buffer, got);
    return length < got ? std::string(buffer, length) : std::string();
  }

private:
  std::ifstream file_;
};

/// Converts an address of the program into an offset in the file.
bool offset_of(const std::vector<Elf64_Phdr>& headers, std::uint64_t address, std::uint64_t& offset) {
  for (const auto& header : headers)
    if (header.p_type == PT_LOAD && address >= header.p_vaddr && address - header.p_vaddr < header.p_filesz)
      return !__builtin_add_overflow(header.p_offset, address - header.p_vaddr, &offset);
  return false;
}

bool read_headers(File& file, std::vector<Elf64_Phdr>& headers) {
  constexpr unsigned char order = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  Elf64_Ehdr head;
  if (!file.read(0, &head, sizeof head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != order ||
      head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phnum > most_headers)
    return false;
  headers.resize(head.e_phnum);
  return file.read(head.e_phoff, headers.data(), headers.size() * sizeof(Elf64_Phdr));
}

struct Names {
  std::string_view prefix; ///< of the file name of the library, without its version
  std::string_view version;
  const char* owner;
};

// A Fortran or C++ library appears only together with the C one, so its name is sufficient.
constexpr Names other_libraries[] = {
    {"libmpi.so", ".12", "MPICH, MVAPICH or Intel MPI"},
    {"libmpifort.so", "", "MPICH, MVAPICH or Intel MPI"},
    {"libmpicxx.so", "", "MPICH, MVAPICH or Intel MPI"},
    {"libmpich.so", "", "MPICH"},
    {"libmpichcxx.so", "", "MPICH"},
    {"libmpichfort.so", "", "MPICH"},
    {"libmpi_abi.so", ".0", "MPICH"}, // before the standard ABI, which begins with version 1
    {"libpmpi.so", ".12", "MPICH"},
    {"libmpi.so", ".4", "Intel MPI"},
    {"libmpi_mt.so", ".4", "Intel MPI"},
    {"libmpi_dbg.so", ".4", "Intel MPI"},
    {"libmpi_dbg_mt.so", ".4", "Intel MPI"},
    {"libmpi.so", "", "Open MPI"},
    {"libmpi_cxx.so", "", "Open MPI"},
    {"libmpi_mpifh.so", "", "Open MPI"},
    {"libmpi_usempi.so", "", "Open MPI"},
    {"libmpi_usempif08.so", "", "Open MPI"},
    {"libmpi_usempi_ignore_tkr.so", "", "Open MPI"},
    {"libmpi_gnu", "", "Cray MPICH"},
    {"libmpi_cray", "", "Cray MPICH"},
    {"libmpi_intel", "", "Cray MPICH"},
};

std::string_view last_component(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// NearMPI's own compiler wrapper, beside this mpiexec.
std::string own_wrapper() {
  std::error_code none;
  auto program = std::filesystem::read_symlink("/proc/self/exe", none);
  auto wrapper = program.parent_path() / "mpicc";
  return std::filesystem::exists(wrapper, none) ? wrapper.string() : "NearMPI's mpicc";
}

/// The sentence about a program: `how` describes how it got the library ("was linked with libmpi.so.40"); the
/// rest says what to do ("compile and link it with mpicc").
std::string sentence_on(const std::string& program, const std::string& how, const std::string& owner,
                        const std::string& remedy) {
  return base::format("'{}' {} of {}, which does not know this mpiexec: each of its processes runs alone, as "
                      "rank 0 of 1; {} to run it on NearMPI",
                      base::printable(program), base::printable(how), owner, remedy);
}

/// Whether a file that a process has loaded is a library of the standard ABI other than this mpiexec's. Ours
/// is mapped under the name to which its links lead, or is a copy in installations without links.
bool is_other_abi_library(const std::string& file) {
  std::error_code none;
  return last_component(file).starts_with("libmpi_abi.so") &&
         !std::filesystem::equivalent(file, own_library_folder() + "/libmpi_abi.so.1", none);
}

/// Whether the process was started by another MPI's launcher, below one of our ranks: then it is not on its
/// own.
bool has_other_launcher(os::Pid process) {
  auto rows = os::environment_of(process);
  std::vector<char*> entries;
  for (auto& row : rows) entries.push_back(row.data());
  entries.push_back(nullptr);
  return !boot::foreign_launcher(entries.data()).empty();
}

} // namespace

std::vector<std::string> needed_libraries(const std::string& path) {
  File file(path);
  std::vector<Elf64_Phdr> headers;
  if (!read_headers(file, headers)) return {};
  auto dynamic = std::find_if(headers.begin(), headers.end(),
                              [](const Elf64_Phdr& header) { return header.p_type == PT_DYNAMIC; });
  if (dynamic == headers.end() || dynamic->p_filesz > most_dynamic_bytes) return {};
  std::vector<Elf64_Dyn> entries(dynamic->p_filesz / sizeof(Elf64_Dyn));
  if (!file.read(dynamic->p_offset, entries.data(), entries.size() * sizeof(Elf64_Dyn))) return {};
  auto end = std::find_if(entries.begin(), entries.end(),
                          [](const Elf64_Dyn& entry) { return entry.d_tag == DT_NULL; });
  entries.erase(end, entries.end());
  auto table = std::find_if(entries.begin(), entries.end(),
                            [](const Elf64_Dyn& entry) { return entry.d_tag == DT_STRTAB; });
  std::uint64_t texts = 0, at = 0;
  if (table == entries.end() || !offset_of(headers, table->d_un.d_ptr, texts)) return {};
  std::vector<std::string> libraries;
  for (const auto& entry : entries) {
    if (entry.d_tag != DT_NEEDED || libraries.size() == most_libraries) continue;
    if (__builtin_add_overflow(texts, entry.d_un.d_val, &at)) continue;
    if (auto name = file.text(at); !name.empty()) libraries.push_back(std::move(name));
  }
  return libraries;
}

std::string owner_of_library(const std::string& library) {
  auto file = last_component(library);
  for (const auto& names : other_libraries) {
    if (!file.starts_with(names.prefix)) continue;
    std::string_view rest = file.substr(names.prefix.size());
    if (names.version.empty() || rest == names.version ||
        (rest.starts_with(names.version) && rest[names.version.size()] == '.'))
      return names.owner;
  }
  return {};
}

std::vector<std::string> foreign_programs(const Command& command) {
  std::vector<std::string> sentences;
  for (const auto& application : command.applications) {
    if (application.arguments.empty()) continue;
    const auto& program = application.arguments[0];
    for (const auto& library : needed_libraries(os::program_file(program, application.directory))) {
      auto owner = owner_of_library(library);
      if (owner.empty()) continue;
      sentences.push_back(sentence_on(program, "was linked with " + library, owner,
                                      "compile and link it with " + own_wrapper()));
      break;
    }
  }
  return sentences;
}

std::string foreign_process(std::span<const os::Pid> processes) {
  for (os::Pid process : processes) {
    std::string library, owner, remedy;
    bool has_ours = false;
    for (const auto& file : os::mapped_files(process)) {
      has_ours = has_ours || last_component(file).starts_with("libnearmpi.so");
      if (!owner.empty()) continue;
      if (owner = owner_of_library(file); !owner.empty()) {
        library = last_component(file);
        remedy = "build what needs that library with " + own_wrapper();
      } else if (is_other_abi_library(file)) {
        library = file; // only its folder shows where it comes from
        owner = "another MPI library";
        remedy = "link it with " + own_wrapper();
        if (auto folder = own_library_folder(); !folder.empty())
          remedy = base::format("let {} stay first in LD_LIBRARY_PATH, or {},", folder, remedy);
      }
    }
    // With both libraries loaded, it is not known which one the process will use.
    if (!owner.empty() && !has_ours && !has_other_launcher(process))
      return sentence_on(os::name_of(process), "has loaded " + library, owner, remedy);
  }
  return {};
}

} // namespace near::launch
