// Memory from the kernel: shared memory files, mappings, placement and allocation.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace near::os {

using base::Result;

std::size_t page_size();
/// The machine's physical memory in bytes; 0 if unknown.
std::uint64_t physical_memory();
/// The size in bytes of the largest cache that this processor uses, according to the kernel; 0 if unknown.
/// Not sysconf(3), which on some machines adds up the caches of all sockets.
std::uint64_t largest_cache();
/// The size in bytes of this processor's data cache at that level (1 is the
/// first), according to the kernel; 0 if there is none or if it is unknown.
std::uint64_t data_cache(int level);
/// RLIMIT_AS in bytes; UINT64_MAX if unlimited.
std::uint64_t address_space_limit();
/// Whether RLIMIT_FSIZE is set; it also applies to memory files.
bool file_sizes_are_limited();
/// Whether this process runs under Valgrind, which needs most addresses itself and processes every mapped
/// page.
bool addresses_are_few();

/// The size in bytes of a huge page, which one entry at the next level of the page table maps; 0 if the kernel has none.
std::size_t huge_page_size();
/// The number of huge pages, on all nodes, that the administrator has reserved and that are not yet in use.
std::uint64_t reserved_huge_pages();
/// The administrator's policy for shared memory in huge pages that are not reserved: "never", "advise",
/// "always" and so on; "" if the kernel does not support them.
std::string shared_huge_pages_policy();

/// Creates a sparse memfd of `bytes` bytes, close-on-exec and not yet sealed. With `huge` it consists of
/// reserved huge pages, each of which is taken when it is first written.
Result make_shared_file(const char* name, std::uint64_t bytes, int& descriptor, bool huge = false);
/// Seals the length of a memory file: it can never change again.
Result seal_length(int descriptor);
/// Whether the descriptor is a memory file with sealed length; `bytes` receives the length.
bool is_sealed(int descriptor, std::uint64_t& bytes);
/// Whether the file belongs to the user with whose rights this process acts.
bool is_own_file(int descriptor);
/// The inode number, which identifies a descriptor; 0 if it is not open.
std::uint64_t inode_of(int descriptor);
void close_descriptor(int descriptor);
/// Opens /proc/<pid>/fd/<number> for reading, and for writing if `writable`.
Result open_descriptor_of(std::int32_t pid, int number, bool writable, int& descriptor);

/// Maps the whole file, shared, at an address where huge pages fit, without reserving memory. Fails with
/// Code::limit if the address space is too small.
Result map_shared(int descriptor, std::uint64_t bytes, bool writable, std::byte*& base);
/// Like map_shared(), at an address within a range that the caller has reserved with keep_addresses().
Result map_shared_at(int descriptor, std::uint64_t bytes, bool writable, std::byte* base);
/// Reserves addresses for later mappings, aligned for huge pages; they cannot be accessed. Fails with
/// Code::limit if the address space is too small.
Result keep_addresses(std::uint64_t bytes, std::byte*& base);
void unmap(void* base, std::uint64_t bytes);
/// Makes whole pages of a mapping inaccessible, but keeps their addresses.
Result close_pages(void* base, std::uint64_t bytes);
/// Excludes the range from forked children and from core files.
Result keep_from_children_and_dumps(void* base, std::uint64_t bytes);

/// The NUMA node on which the calling thread is running.
int current_node();
/// Whether this machine has a NUMA node with this number, with or without processors.
bool has_node(int node);
/// Requests pages on `node`, or on other nodes if it is full. Fails with Code::refused or Code::unsupported
/// if a sandbox forbids memory policies or the kernel has none; first touch then decides the placement.
Result prefer_node(void* base, std::size_t bytes, int node);
/// Like prefer_node(), but without other nodes. For reserved huge pages only, since failing to get one of
/// them need not end the process.
Result require_node(void* base, std::size_t bytes, int node);
/// Whether the kernel should use huge pages for the range when its pages are first written.
enum class HugePages { never, wanted };
void advise_huge_pages(void* base, std::size_t bytes, HugePages advice);
/// How many bytes of the range this process has mapped by huge pages that are not reserved, according to
/// /proc/self/smaps. If a mapping extends beyond the range, this is an upper bound.
std::uint64_t bytes_in_huge_pages(const void* base, std::size_t bytes);
/// Allocates every page of the range now, on behalf of this thread. Fails with Code::no_memory if the kernel
/// has none left. Before Linux 5.14 it touches the pages one by one, which ends the process if a reserved
/// huge page is no longer available; without `touching` it fails with Code::unsupported instead.
Result populate(void* base, std::size_t bytes, bool touching = true);
/// Maps pages of shared memory that other processes have written, so that reading them causes no page faults. Has no
/// effect if the kernel cannot do this (before Linux 5.14).
void map_pages(void* base, std::size_t bytes);
/// The number of bytes in allocated pages of a shared range, whichever process has touched them. The range
/// must consist of whole pages.
std::uint64_t bytes_in_core(const void* base, std::size_t bytes);
/// Whether the kernel may refuse single pages to a process that has mapped them (vm.overcommit_memory 2).
/// Touching a page may then end the process.
bool refuses_overcommitment();
/// Returns the pages of a shared range to the kernel; the range reads as zeros afterwards.
Result give_back(void* base, std::size_t bytes);

} // namespace near::os
