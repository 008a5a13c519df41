// Memory as the kernel gives it: shared files in memory, mappings, placement and reservation.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace near::os {

using base::Result;

std::size_t page_size();
/// Bytes of physical memory of the machine; 0 when unknown.
std::uint64_t physical_memory();
/// Bytes of the largest cache that this processor can reach, as the kernel knows it; 0 when it does not. The
/// processor's own word (sysconf) counts other sockets in on some machines.
std::uint64_t largest_cache();
/// RLIMIT_AS in bytes; UINT64_MAX when unlimited.
std::uint64_t address_space_limit();
/// Whether RLIMIT_FSIZE is set: memory files are files.
bool file_sizes_are_limited();
/// Whether this process runs under a tool that needs most addresses for itself and works through every page
/// that is mapped: valgrind.
bool addresses_are_few();

/// Bytes of a huge page: what one entry of the next level of page tables maps; 0 when the kernel has none.
std::size_t huge_page_size();
/// Huge pages that the administrator has set aside, and that nobody has taken yet, on all nodes together.
std::uint64_t reserved_huge_pages();
/// Whether shared memory may come in huge pages without reserved ones: "never", "advise", "always", ..., as
/// the administrator has set it; "" when this kernel cannot.
std::string shared_huge_pages_policy();

/// A memfd of `bytes`, sparse, close-on-exec. Not yet sealed. With `huge` made of reserved huge pages; each
/// is taken when it is written first.
Result make_shared_file(const char* name, std::uint64_t bytes, int& descriptor, bool huge = false);
/// Forbids every later change of its length.
Result seal_length(int descriptor);
/// True when the descriptor is a memory file whose length is sealed; `bytes` is its length.
bool is_sealed(int descriptor, std::uint64_t& bytes);
/// The inode number, to recognise a descriptor; 0 when it is not open.
std::uint64_t inode_of(int descriptor);
void close_descriptor(int descriptor);
/// Sets or clears close-on-exec.
Result keep_over_exec(int descriptor, bool keep);
/// Opens /proc/<pid>/fd/<number> for reading and writing, or reading alone.
Result open_descriptor_of(std::int32_t pid, int number, bool writable, int& descriptor);

/// Maps the whole file, shared, without reserving memory for it, where huge pages fit. Code::limit when the
/// address space is too small.
Result map_shared(int descriptor, std::uint64_t bytes, bool writable, std::byte*& base);
/// The same at an address, whose neighbourhood the caller has kept free with keep_addresses.
Result map_shared_at(int descriptor, std::uint64_t bytes, bool writable, std::byte* base);
/// Addresses for mappings to come, where huge pages fit; they cannot be read. Code::limit as above.
Result keep_addresses(std::uint64_t bytes, std::byte*& base);
void unmap(void* base, std::uint64_t bytes);
/// Whole pages of a mapping become addresses that nobody may touch.
Result close_pages(void* base, std::uint64_t bytes);
/// A forked child does not get the range, and core files leave it out.
Result keep_from_children_and_dumps(void* base, std::uint64_t bytes);

/// The NUMA node that this thread runs on.
int current_node();
/// Whether this machine has a NUMA node of that number, with or without processors.
bool has_node(int node);
/// Asks for pages of the range on `node`, others when it is full. Code::refused or Code::unsupported where a
/// sandbox forbids policies or the kernel has none: placement then rests on first touch.
Result prefer_node(void* base, std::size_t bytes, int node);
/// The same without others: only for reserved huge pages, whose lack is no reason to end a process.
Result insist_on_node(void* base, std::size_t bytes, int node);
/// Whether pages of the range should be huge ones, if they can, when they are written first.
enum class HugePages { never, wanted };
void advise_huge_pages(void* base, std::size_t bytes, HugePages advice);
/// How much of the range this process has in huge pages that are not reserved ones, by /proc/self/smaps. Of a
/// mapping that goes beyond the range, at most the part within.
std::uint64_t bytes_in_huge_pages(const void* base, std::size_t bytes);
/// Allocates every page of the range now, written by this thread. Code::no_memory when the kernel has none
/// left. Before Linux 5.14 it touches them instead, one by one; Code::unsupported if `touching` is not
/// allowed, which ends the process when a reserved huge page is not there any more.
Result populate(void* base, std::size_t bytes, bool touching = true);
/// Bytes of a shared range of whole pages that exist, whoever has touched them.
std::uint64_t bytes_in_core(const void* base, std::size_t bytes);
/// Whether the kernel refuses memory that it could not give, page by page, to a process that already maps it
/// (vm.overcommit_memory 2): a page that is touched then may end the process.
bool refuses_overcommitment();
/// Gives the pages of a shared range back; it reads as zeros afterwards.
Result give_back(void* base, std::size_t bytes);

} // namespace near::os
