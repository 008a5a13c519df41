// Every strided kernel, compared block by block, next to inaccessible pages.
#include "copy/strided.h"
#include "copy/copy.h"
#include "copy/moves.h"
#include "guarded.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace near;

namespace {

std::byte* only_read(const std::byte* memory) { return const_cast<std::byte*>(memory); }

/// Where the blocks of a test lie, relative to the first one.
using Places = std::vector<std::ptrdiff_t>;

Places places_of(const copy::Grid& grid) {
  Places places;
  for (std::size_t row = 0; row < grid.rows; ++row)
    for (std::size_t i = 0; i < grid.count; ++i)
      places.push_back(static_cast<std::ptrdiff_t>(row) * grid.row_stride +
                       static_cast<std::ptrdiff_t>(i) * grid.stride);
  return places;
}

class Strided : public testing::TestWithParam<const char*> {
protected:
  void SetUp() override {
    const char* const name = GetParam();
    const auto all = copy::kernels();
    const auto kernel =
        std::find_if(all.begin(), all.end(), [&](const auto& row) { return row.name == name; });
    if (kernel == all.end())
      GTEST_SKIP() << "kernel " << name << " is NOT tested here: another architecture's";
    if (!kernel->runs()) GTEST_SKIP() << "kernel " << name << " is NOT tested here: no " << kernel->needs;
    kernel_ = kernel->strided;
    for (Guarded* memory : {&strided_, &packed_})
      for (std::byte* at = memory->begin(); at != memory->end(); ++at) *at = random_byte();
  }

  std::byte random_byte() { return static_cast<std::byte>(random_() >> 8); }

  /// Gathers by `gather(packed, from)` and scatters by `scatter(to, packed)`. If blocks overlap, they are only gathered.
  template <class Gather, class Scatter>
  void expect_exact(const Places& places, std::size_t bytes, bool overlap, Gather gather, Scatter scatter) {
    const auto [lowest, highest] = std::minmax_element(places.begin(), places.end());
    const std::size_t total = places.size() * bytes;
    const auto span = static_cast<std::size_t>(*highest - *lowest) + bytes;
    ASSERT_LE(span + 2 * around, size);
    ASSERT_LE(total + 2 * around, size);
    // At both ends of what is accessible, and anywhere in between.
    const std::size_t odd = around + random_() % 64, odd_packed = around + random_() % 64;
    const std::pair<std::byte*, std::byte*> where[] = {
        {strided_.begin(), packed_.end() - total},
        {strided_.end() - span, packed_.begin()},
        {strided_.begin() + odd, packed_.begin() + odd_packed},
        {strided_.end() - span - odd_packed, packed_.end() - total - odd},
    };
    for (const auto& [low, packed] : where) {
      std::byte* const first = low - *lowest;
      expect_kept_around(packed_, packed, total, [&] { gather(packed, first); });
      for (std::size_t i = 0; i < places.size(); ++i)
        ASSERT_EQ(std::memcmp(packed + i * bytes, first + places[i], bytes), 0)
            << "block " << i << " of " << places.size() << " was not gathered";
      if (overlap) continue;
      expected_.assign(low, low + span);
      for (std::size_t i = 0; i < total; ++i) packed[i] = random_byte();
      for (std::size_t i = 0; i < places.size(); ++i)
        std::memcpy(&expected_[static_cast<std::size_t>(places[i] - *lowest)], packed + i * bytes, bytes);
      expect_kept_around(strided_, low, span, [&] { scatter(first, packed); });
      ASSERT_EQ(std::memcmp(low, expected_.data(), span), 0)
          << places.size() << " blocks were not scattered, or bytes beside them were written";
    }
  }
  /// write() writes nothing but `bytes` bytes from `to` on.
  template <class Write>
  void expect_kept_around(Guarded& memory, std::byte* to, std::size_t bytes, Write write) {
    const auto below = std::min<std::size_t>(around, static_cast<std::size_t>(to - memory.begin()));
    const auto above = std::min<std::size_t>(around, static_cast<std::size_t>(memory.end() - to) - bytes);
    const std::vector<std::byte> before(to - below, to), behind(to + bytes, to + bytes + above);
    write();
    ASSERT_TRUE(std::equal(before.begin(), before.end(), to - below)) << "bytes before were written";
    ASSERT_TRUE(std::equal(behind.begin(), behind.end(), to + bytes)) << "bytes after were written";
  }
  void expect_exact(const copy::Grid& grid, bool overlap) {
    SCOPED_TRACE(std::to_string(grid.rows) + " rows, " + std::to_string(grid.row_stride) + " apart, of " +
                 std::to_string(grid.count) + " blocks of " + std::to_string(grid.bytes) + ", " +
                 std::to_string(grid.stride) + " apart");
    expect_exact(
        places_of(grid), grid.bytes, overlap,
        [&](std::byte* packed, const std::byte* from) {
          kernel_->gathering(grid)(packed, only_read(from), grid);
        },
        [&](std::byte* to, const std::byte* packed) {
          kernel_->scattering(grid)(only_read(packed), to, grid);
        });
  }

  /// A grid that is a list.
  void expect_list_exact(const Places& places, const copy::Grid& list) {
    expect_exact(
        places, list.bytes, false,
        [&](std::byte* packed, const std::byte* from) {
          kernel_->gathering(list)(packed, only_read(from), list);
        },
        [&](std::byte* to, const std::byte* packed) {
          kernel_->scattering(list)(only_read(packed), to, list);
        });
  }

  /// A list of 16-bit offsets, which begins anywhere in a longer one.
  void expect_short_exact(const Places& places, std::size_t bytes) {
    constexpr std::size_t group = copy::ShortOffsets::group;
    const std::size_t first = random_() % (2 * group);
    std::vector<std::int32_t> bases;
    std::vector<std::uint16_t> at(first);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::size_t in = (first + i) / group;
      if (bases.size() <= in) {
        const std::size_t next = std::min(places.size(), (in + 1) * group - first);
        bases.resize(in + 1);
        bases[in] =
            static_cast<std::int32_t>(*std::min_element(places.begin() + static_cast<std::ptrdiff_t>(i),
                                                        places.begin() + static_cast<std::ptrdiff_t>(next)));
      }
      if (places[i] - bases[in] > 65535) return; // these cannot be kept so
      at.push_back(static_cast<std::uint16_t>(places[i] - bases[in]));
    }
    const copy::ShortOffsets list{at.data(), bases.data(), first, places.size()};
    expect_exact(
        places, bytes, false,
        [&](std::byte* packed, const std::byte* from) {
          kernel_->gather_shortly(packed, only_read(from), bytes, list);
        },
        [&](std::byte* to, const std::byte* packed) {
          kernel_->scatter_shortly(only_read(packed), to, bytes, list);
        });
  }

  /// Calls test() for processors that fetch the lines of stores in either way, until it has failed.
  template <class Test>
  static void for_both_ways_of_fetching(Test test) {
    const copy::StoreLines here = copy::store_lines;
    for (copy::StoreLines way : {copy::StoreLines::in_turn, copy::StoreLines::together}) {
      copy::store_lines = way;
      if (!HasFatalFailure()) test();
    }
    copy::store_lines = here;
  }

  static constexpr std::size_t size = 1 << 20, around = 128;
  Guarded strided_{size}, packed_{size};
  std::vector<std::byte> expected_;
  std::mt19937 random_{1};
  const copy::StridedKernel* kernel_ = nullptr;
};

TEST_P(Strided, blocks_of_every_length_up_to_300) {
  for (std::size_t bytes = 1; bytes <= 300; ++bytes) {
    const auto length = static_cast<std::ptrdiff_t>(bytes);
    for (std::ptrdiff_t stride : {length, length + 1, 2 * length, -length, -length - 5})
      for (std::size_t count : {1u, 2u, 7u, 8u}) {
        expect_exact(copy::Grid{bytes, count, stride}, false);
        if (HasFatalFailure()) return;
      }
  }
}

TEST_P(Strided, elements_at_every_small_stride) {
  for (std::size_t bytes : {1u, 2u, 4u, 8u, 16u})
    for (std::ptrdiff_t stride = -40; stride <= 80; ++stride) {
      const bool overlap = static_cast<std::size_t>(std::abs(stride)) < bytes;
      for (std::size_t count = 1; count <= 140; count += count < 40 ? 1 : 7)
        for (std::size_t rows : {1u, 3u}) {
          const auto row = static_cast<std::ptrdiff_t>(count * 80 + 3);
          expect_exact(copy::Grid{bytes, count, stride, rows, row}, overlap && (count > 1));
          if (HasFatalFailure()) return;
        }
    }
}

TEST_P(Strided, blocks_that_share_sets_of_a_cache) {
  for_both_ways_of_fetching([&] {
    for (std::size_t bytes : {1u, 4u, 8u, 12u, 16u, 20u, 24u, 32u, 40u, 48u, 56u, 64u, 65u, 72u, 96u, 256u})
      for (std::ptrdiff_t stride : {512, 1024, 2048, -4096, 12288})
        for (std::size_t count : {9u, 31u, 61u, 77u})
          for (std::size_t rows : {1u, 2u}) {
            expect_exact(copy::Grid{bytes, count, stride, rows, 256}, false);
            if (HasFatalFailure()) return;
          }
  });
}

TEST_P(Strided, many_blocks_that_share_sets_of_a_cache) {
  for_both_ways_of_fetching([&] {
    for (std::size_t bytes : {4u, 8u, 12u, 16u, 24u, 32u, 40u, 48u, 56u, 64u, 80u, 96u, 128u})
      for (std::ptrdiff_t stride : {512, -1024})
        for (std::size_t rows : {1u, 4u}) {
          expect_exact(copy::Grid{bytes, 900, stride, rows, 128}, false);
          if (HasFatalFailure()) return;
        }
    // Rows overlap, so that these fit into the memory of the test, and are gathered only. The last ones are more than are ever paced.
    for (std::size_t bytes : {4u, 8u, 12u, 16u, 24u, 32u, 40u, 48u, 56u, 64u, 112u, 120u})
      for (std::ptrdiff_t stride : {2048, 4096})
        for (std::size_t rows : {1u, 8u}) {
          expect_exact(copy::Grid{bytes, 200, stride, rows, stride}, true);
          if (HasFatalFailure()) return;
        }
    expect_exact(copy::Grid{8, 200, 512, 90, 512}, true);
  });
}

TEST_P(Strided, doubles_from_the_second_level_cache) {
  for (std::ptrdiff_t stride : {24, 32, 96, -96}) {
    expect_exact(copy::Grid{8, 2501, stride}, false);
    if (HasFatalFailure()) return;
  }
  expect_exact(copy::Grid{8, 12501, 64}, false);
}

TEST_P(Strided, long_blocks_that_leave_the_cache) {
  for (std::size_t bytes : {512u, 513u, 575u, 1008u, 1023u, 1024u, 1025u, 2048u})
    for (std::size_t rows : {1u, 3u}) {
      expect_exact(copy::Grid{bytes, 70, 2049, rows, 70 * 2049 + 5}, false);
      if (HasFatalFailure()) return;
    }
}

TEST_P(Strided, nothing_is_copied_for_no_block) {
  for (std::size_t bytes : {1u, 2u, 4u, 8u, 16u, 40u, 100u, 2000u})
    for (std::ptrdiff_t apart : {1, 2, 3, 4, 5}) {
      const auto stride = apart * static_cast<std::ptrdiff_t>(bytes);
      for (const copy::Grid& grid : {copy::Grid{bytes, 0, stride}, copy::Grid{bytes, 5, stride, 0, 7}}) {
        std::byte* const packed = packed_.begin() + around;
        std::byte* const strided = strided_.begin() + around;
        expect_kept_around(packed_, packed, 0, [&] { kernel_->gathering(grid)(packed, strided, grid); });
        expect_kept_around(strided_, strided, 0, [&] { kernel_->scattering(grid)(packed, strided, grid); });
      }
    }
}

TEST_P(Strided, blocks_that_are_pages_apart) {
  for (std::size_t bytes : {1u, 4u, 8u, 24u, 65u, 513u})
    for (std::ptrdiff_t stride : {4096, -4096, 8192 + 8})
      for (std::size_t count : {1u, 9u, 100u}) {
        expect_exact(copy::Grid{bytes, count, stride}, false);
        if (HasFatalFailure()) return;
      }
}

TEST_P(Strided, columns_of_a_matrix) {
  for (std::size_t bytes : {1u, 2u, 4u, 8u, 12u, 16u, 32u})
    for (std::size_t rows : {2u, 3u, 8u, 21u})
      for (std::size_t count : {5u, 257u, 700u})
        for (std::ptrdiff_t stride : {704, -704}) {
          expect_exact(copy::Grid{bytes, count, stride, rows, static_cast<std::ptrdiff_t>(bytes)}, false);
          if (HasFatalFailure()) return;
        }
}

TEST_P(Strided, columns_of_a_matrix_whose_rows_share_sets_of_a_cache) {
  for_both_ways_of_fetching([&] {
    for (std::size_t bytes : {4u, 8u, 16u, 32u})
      for (std::size_t rows : {2u, 9u})
        for (std::ptrdiff_t stride : {512, -1024, 2048}) {
          expect_exact(copy::Grid{bytes, 300, stride, rows, static_cast<std::ptrdiff_t>(bytes)}, false);
          if (HasFatalFailure()) return;
        }
  });
}

TEST_P(Strided, listed_blocks) {
  for (std::size_t bytes : {1u, 2u, 3u, 4u, 7u, 8u, 12u, 16u, 20u, 24u, 32u, 40u, 64u, 100u, 256u, 300u})
    for (std::size_t count : {1u, 3u, 4u, 5u, 8u, 33u, 500u}) {
      Places places;
      std::ptrdiff_t at = 0;
      for (std::size_t i = 0; i < count; ++i) {
        places.push_back(at);
        at += static_cast<std::ptrdiff_t>(bytes + random_() % 100);
      }
      std::shuffle(places.begin(), places.end(), random_);
      const std::vector<std::int32_t> narrow(places.begin(), places.end());
      const std::vector<std::int64_t> wide(places.begin(), places.end());
      SCOPED_TRACE(std::to_string(count) + " blocks of " + std::to_string(bytes));
      expect_exact(
          places, bytes, false,
          [&](std::byte* packed, const std::byte* from) {
            kernel_->gather_listed(packed, only_read(from), bytes, {narrow.data(), count});
          },
          [&](std::byte* to, const std::byte* packed) {
            kernel_->scatter_listed(only_read(packed), to, bytes, {narrow.data(), count});
          });
      expect_short_exact(places, bytes);
      expect_list_exact(places, {.bytes = bytes, .count = count, .at = narrow.data()});
      expect_exact(
          places, bytes, false,
          [&](std::byte* packed, const std::byte* from) {
            kernel_->gather_widely(packed, only_read(from), bytes, {wide.data(), count});
          },
          [&](std::byte* to, const std::byte* packed) {
            kernel_->scatter_widely(only_read(packed), to, bytes, {wide.data(), count});
          });
      if (HasFatalFailure()) return;
    }
}

/// Blocks whose lengths are random, in random order.
struct Unequal {
  std::vector<std::int32_t> at, start;
  copy::Blocks blocks() const { return {at.data(), start.data(), at.size()}; }
  /// Of each byte, in each of `count` repetitions.
  Places bytes(std::size_t count, std::ptrdiff_t extent) const {
    Places places;
    for (std::size_t element = 0; element < count; ++element)
      for (std::size_t i = 0; i < at.size(); ++i)
        for (std::int32_t byte = 0; byte < start[i + 1] - start[i]; ++byte)
          places.push_back(static_cast<std::ptrdiff_t>(element) * extent + at[i] + byte);
    return places;
  }
};
template <class Random>
Unequal unequal_blocks(std::size_t count, std::size_t longest, Random& random) {
  std::vector<std::pair<std::int32_t, std::int32_t>> blocks; // place and length
  std::int32_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto length = static_cast<std::int32_t>(1 + random() % longest);
    blocks.emplace_back(at, length);
    at += length + static_cast<std::int32_t>(random() % 20);
  }
  std::shuffle(blocks.begin(), blocks.end(), random);
  // A list may be the part of another one that begins at any packed byte.
  Unequal made{{}, {static_cast<std::int32_t>(random() % 1000)}};
  for (const auto& [place, length] : blocks) {
    made.at.push_back(place);
    made.start.push_back(made.start.back() + length);
  }
  return made;
}

TEST_P(Strided, blocks_of_different_lengths) {
  for (std::size_t longest : {1u, 2u, 5u, 16u, 40u, 63u, 64u, 65u, 66u, 200u, 3000u})
    for (std::size_t count : {1u, 2u, 3u, 7u, 40u, 100u})
      for (int trial = 0; trial < 4; ++trial) {
        const Unequal list = unequal_blocks(count, longest, random_);
        SCOPED_TRACE(std::to_string(count) + " blocks of up to " + std::to_string(longest));
        const Places places = list.bytes(1, 0);
        expect_exact(
            places, 1, false,
            [&](std::byte* packed, const std::byte* from) {
              kernel_->gather_unequal(packed, only_read(from), list.blocks());
            },
            [&](std::byte* to, const std::byte* packed) {
              kernel_->scatter_unequal(only_read(packed), to, list.blocks());
            });
        const copy::Grid grid{.count = count, .at = list.at.data(), .start = list.start.data()};
        expect_exact(
            places, 1, false,
            [&](std::byte* packed, const std::byte* from) {
              kernel_->gathering(grid)(packed, only_read(from), grid);
            },
            [&](std::byte* to, const std::byte* packed) {
              kernel_->scattering(grid)(only_read(packed), to, grid);
            });
        if (HasFatalFailure()) return;
      }
}

TEST_P(Strided, blocks_that_are_cut_into_moves) {
  int cuts = 0;
  for (std::size_t longest = 1; longest <= 300; longest += longest < 70 ? 1 : 23)
    for (std::size_t count : {1u, 2u, 3u, 9u, 32u}) {
      const Unequal list = unequal_blocks(count, longest, random_);
      const copy::CutBlocks cut = copy::cut(list.blocks());
      if (cut.moves.all == nullptr) continue;
      ++cuts;
      ASSERT_LE(cut.memory.size(), copy::most_moves);
      SCOPED_TRACE(std::to_string(count) + " blocks of up to " + std::to_string(longest));
      const copy::Grid grid{.count = count, .at = list.at.data(), .moves = &cut.moves};
      expect_exact(
          list.bytes(1, 0), 1, false,
          [&](std::byte* packed, const std::byte* from) {
            kernel_->gathering(grid)(packed, only_read(from), grid);
          },
          [&](std::byte* to, const std::byte* packed) {
            kernel_->scattering(grid)(only_read(packed), to, grid);
          });
      if (HasFatalFailure()) return;
    }
  ASSERT_GT(cuts, 250);
}

TEST(moves, blocks_that_overlap_are_not_cut) {
  const std::int32_t start[] = {0, 8, 12, 20}, apart[] = {12, 8, 0}, shared[] = {11, 8, 0};
  EXPECT_EQ(copy::cut({apart, start, 3}).memory.size(), 3u);
  EXPECT_EQ(copy::cut({shared, start, 3}).moves.all, nullptr);
}

TEST(moves, blocks_that_end_beyond_32_bits_are_not_cut) {
  constexpr std::int32_t far = std::numeric_limits<std::int32_t>::max();
  const std::int32_t start[] = {0, 4, 28}, beyond[] = {0, far - 3}, below[] = {0, far - 24};
  EXPECT_EQ(copy::cut({beyond, start, 2}).moves.all, nullptr);
  EXPECT_EQ(copy::cut({below, start, 2}).memory.back().at, 0);
  EXPECT_EQ(copy::cut({below, start, 2}).memory.size(), 3u);
}

TEST(moves, long_blocks_and_many_of_them_are_not_cut) {
  constexpr std::int32_t longest = 32 * copy::most_moves;
  const std::int32_t at[] = {0}, of_most[] = {0, longest - 1}, of_more[] = {0, longest + 1};
  EXPECT_EQ(copy::cut({at, of_most, 1}).memory.size(), copy::most_moves);
  EXPECT_EQ(copy::cut({at, of_more, 1}).moves.all, nullptr);
  std::vector<std::int32_t> places, starts{0};
  for (std::int32_t i = 0; i <= static_cast<std::int32_t>(copy::most_moves); ++i) {
    places.push_back(4 * i);
    starts.push_back(starts.back() + 1 + i % 2);
  }
  EXPECT_EQ(copy::cut({places.data(), starts.data(), copy::most_moves}).memory.size(), copy::most_moves);
  EXPECT_EQ(copy::cut({places.data(), starts.data(), copy::most_moves + 1}).moves.all, nullptr);
}

TEST_P(Strided, the_same_blocks_again_and_again) {
  for (std::size_t longest : {1u, 8u, 30u, 70u, 1500u})
    for (std::size_t blocks : {1u, 2u, 3u, 9u})
      for (std::size_t count : {1u, 2u, 5u, 33u, 300u})
        for (int sign : {1, -1}) {
          const Unequal list = unequal_blocks(blocks, longest, random_);
          const std::ptrdiff_t length =
              *std::max_element(list.at.begin(), list.at.end()) + static_cast<std::ptrdiff_t>(longest);
          const std::ptrdiff_t extent = sign * (length + static_cast<std::ptrdiff_t>(random_() % 30));
          const Places places = list.bytes(count, extent);
          if (static_cast<std::size_t>(std::abs(extent)) * count + 4096 > size) continue;
          const copy::Repeats repeats{count, extent, places.size() / count};
          SCOPED_TRACE(std::to_string(count) + " times " + std::to_string(blocks) + " blocks of up to " +
                       std::to_string(longest) + ", " + std::to_string(extent) + " apart");
          expect_exact(
              places, 1, false,
              [&](std::byte* packed, const std::byte* from) {
                kernel_->gather_repeated(packed, only_read(from), list.blocks(), repeats);
              },
              [&](std::byte* to, const std::byte* packed) {
                kernel_->scatter_repeated(only_read(packed), to, list.blocks(), repeats);
              });
          if (HasFatalFailure()) return;
        }
}

TEST(between_grids, every_block_is_copied_and_nothing_beside_it) {
  std::mt19937 random(7);
  for (std::size_t bytes : {16u, 17u, 24u, 32u, 40u, 64u, 200u, 5000u})
    for (std::size_t count : {1u, 2u, 5u})
      for (std::size_t rows : {1u, 3u})
        for (int trial = 0; trial < 4; ++trial) {
          const auto apart = [&] { return static_cast<std::ptrdiff_t>(bytes + random() % 40); };
          const auto grid = [&](int sign) {
            const std::ptrdiff_t stride = apart();
            return copy::Grid{.bytes = bytes,
                              .count = count,
                              .stride = sign * stride,
                              .rows = rows,
                              .row_stride = static_cast<std::ptrdiff_t>(count) * stride + apart()};
          };
          const copy::Grid from = grid(1), to = grid(trial % 2 == 0 ? 1 : -1);
          const Places sources = places_of(from), targets = places_of(to);
          const std::ptrdiff_t lowest = *std::min_element(targets.begin(), targets.end()),
                               highest = *std::max_element(targets.begin(), targets.end());
          std::vector<std::byte> source(static_cast<std::size_t>(sources.back()) + bytes),
              target(static_cast<std::size_t>(highest - lowest) + bytes);
          for (std::byte& each : source) each = static_cast<std::byte>(random() >> 8);
          std::vector<std::byte> expected = target;
          for (std::size_t i = 0; i < sources.size(); ++i)
            std::memcpy(expected.data() + targets[i] - lowest, source.data() + sources[i], bytes);
          copy::between(target.data() - lowest, to, source.data(), from);
          ASSERT_EQ(target, expected) << rows << " rows of " << count << " blocks of " << bytes;
        }
}

INSTANTIATE_TEST_SUITE_P(copy, Strided, testing::Values("avx512vbmi", "avx512", "avx2", "sse2", "neon"),
                         [](const auto& row) { return std::string(row.param); });

} // namespace
