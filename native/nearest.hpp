// How many cells separate each board from its nearest among many: all pairs, a few instructions each.
//
// A tile is a number below 8, so a board is three sets of cells, the bit planes of its tiles. Two boards differ
// where any plane does: XOR plane by plane, OR the three, count the ones. The planes of the corpus lie apart,
// board beside board, so that one wide register holds the same 64 cells of several boards. The widest
// registers the processor has are chosen when the program runs.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "threads.hpp"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define MASKOBAN_WIDE_X86
#include <immintrin.h>
#endif

namespace maskoban {

// The 64-bit words of one plane; at least one, so that boards without cells are no special case.
inline std::size_t words_for(std::size_t cells) { return std::max<std::size_t>(1, (cells + 63) / 64); }

// For each 64 cells in turn the words of the three planes of a board, `apart` words from each other, into zeros.
inline void pack(const std::uint8_t* board, std::size_t cells, std::uint64_t* planes, std::size_t apart) {
    for (std::size_t c = 0; c < cells; ++c)
        for (std::size_t p = 0; p < 3; ++p)
            planes[(c / 64 * 3 + p) * apart] |= std::uint64_t(board[c] >> p & 1) << (c % 64);
}

// Boards to compare with, in groups of eight whose words alternate; the last group is filled up with copies of
// the last board, which change no least distance.
class Corpus {
public:
    static constexpr std::size_t group = 8;

    Corpus(const std::uint8_t* tokens, std::size_t boards, std::size_t cells)
        : words_(words_for(cells)), groups_((boards + group - 1) / group), bits_(groups_ * stride()) {
        for (std::size_t b = 0; b < groups_ * group; ++b)
            pack(tokens + std::min(b, boards - 1) * cells, cells, bits_.data() + b / group * stride() + b % group,
                 group);
    }

    std::size_t words() const { return words_; }
    std::size_t groups() const { return groups_; }
    std::size_t stride() const { return 3 * words_ * group; }
    const std::uint64_t* at(std::size_t g) const { return bits_.data() + g * stride(); }

private:
    std::size_t words_, groups_;
    std::vector<std::uint64_t> bits_;
};

// The least distance from one board to any board of so many groups. Boards of up to 64 cells, by far the most
// compared, have `Words` = 1, which keeps the board in registers; 0 leaves the number open.
using Least = std::uint64_t (*)(const std::uint64_t* board, const std::uint64_t* groups, std::size_t count,
                                std::size_t words);

template <std::size_t Words>
std::uint64_t least_plain(const std::uint64_t* board, const std::uint64_t* groups, std::size_t count,
                          std::size_t words) {
    const std::size_t n = Words ? Words : words;
    std::uint64_t least = ~std::uint64_t{0};
    for (; count > 0; --count, groups += 3 * n * Corpus::group)
        for (std::size_t b = 0; b < Corpus::group; ++b) {
            std::uint64_t distance = 0;
            for (std::size_t w = 0; w < n; ++w) {
                const std::uint64_t *mine = board + 3 * w, *theirs = groups + 3 * w * Corpus::group + b;
                distance += std::popcount((mine[0] ^ theirs[0]) | (mine[1] ^ theirs[Corpus::group]) |
                                          (mine[2] ^ theirs[2 * Corpus::group]));
            }
            least = std::min(least, distance);
        }
    return least;
}

#ifdef MASKOBAN_WIDE_X86

// Both compilers know ^, | and < on whole registers.
template <std::size_t Words>
__attribute__((target("avx512f,avx512vpopcntdq"))) std::uint64_t least_avx512(const std::uint64_t* board,
                                                                               const std::uint64_t* groups,
                                                                               std::size_t count,
                                                                               std::size_t words) {
    const std::size_t n = Words ? Words : words;
    __m512i least = _mm512_set1_epi64(INT64_MAX);
    for (; count > 0; --count) {
        __m512i distance{};
        for (std::size_t w = 0; w < n; ++w) {
            __m512i differ{};
            for (std::size_t p = 0; p < 3; ++p, groups += Corpus::group)
                differ |= _mm512_set1_epi64(static_cast<long long>(board[3 * w + p])) ^ _mm512_loadu_si512(groups);
            distance += _mm512_popcnt_epi64(differ);
        }
        least = distance < least ? distance : least;
    }
    std::uint64_t eight[8];
    _mm512_storeu_si512(eight, least);
    return *std::min_element(eight, eight + 8);
}

// Without an instruction that counts ones: a table of the sixteen half bytes, looked up 32 at a time.
template <std::size_t Words>
__attribute__((target("avx2"))) std::uint64_t least_avx2(const std::uint64_t* board, const std::uint64_t* groups,
                                                         std::size_t count, std::size_t words) {
    const std::size_t n = Words ? Words : words;
    const __m256i ones = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,  //
                                          0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i low = _mm256_set1_epi8(15);
    __m256i least = _mm256_set1_epi64x(INT32_MAX);  // compared as 32-bit numbers, as 64-bit ones cannot be
    for (; count > 0; --count, groups += 3 * n * Corpus::group)
        for (std::size_t half = 0; half < Corpus::group; half += 4) {
            __m256i distance{};
            for (std::size_t w = 0; w < n; ++w) {
                __m256i differ{};
                for (std::size_t p = 0; p < 3; ++p) {
                    const void* theirs = groups + (3 * w + p) * Corpus::group + half;
                    differ |= _mm256_set1_epi64x(static_cast<long long>(board[3 * w + p])) ^
                              _mm256_loadu_si256(static_cast<const __m256i*>(theirs));
                }
                const __m256i bytes = _mm256_add_epi8(_mm256_shuffle_epi8(ones, differ & low),
                                                      _mm256_shuffle_epi8(ones, _mm256_srli_epi16(differ, 4) & low));
                distance += _mm256_sad_epu8(bytes, __m256i{});
            }
            least = _mm256_min_epu32(least, distance);
        }
    std::uint64_t four[4];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(four), least);
    return *std::min_element(four, four + 4);
}

#endif

// The registers this processor can use, widest first.
inline std::vector<std::string> registers() {
    std::vector<std::string> names;
#ifdef MASKOBAN_WIDE_X86
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vpopcntdq")) names.push_back("avx512");
    if (__builtin_cpu_supports("avx2")) names.push_back("avx2");
#endif
    names.push_back("plain");
    return names;
}

inline Least least_with(const std::string& name, std::size_t words) {
    const auto known = registers();
    if (std::find(known.begin(), known.end(), name) == known.end())
        throw std::invalid_argument("this processor has no registers called " + name);
#ifdef MASKOBAN_WIDE_X86
    if (name == "avx512") return words == 1 ? least_avx512<1> : least_avx512<0>;
    if (name == "avx2") return words == 1 ? least_avx2<1> : least_avx2<0>;
#endif
    return words == 1 ? least_plain<1> : least_plain<0>;
}

// The distance from each of n boards to its nearest in the corpus, on so many threads.
// `attend(done)` is called on the calling thread about twenty times a second; what it throws ends the work.
inline std::vector<std::int32_t> nearest(const std::uint8_t* tokens, std::size_t n, std::size_t cells,
                                         const Corpus& corpus, Least least_of, std::size_t threads,
                                         const std::function<void(std::size_t)>& attend) {
    const std::size_t planes = 3 * corpus.words();
    std::vector<std::uint64_t> boards(n * planes);
    for (std::size_t i = 0; i < n; ++i) pack(tokens + i * cells, cells, &boards[i * planes], 1);
    std::vector<std::int32_t> distances(n, INT32_MAX);

    // A few boards pass together over a part of the corpus that the fastest cache holds.
    constexpr std::size_t together = 64, cache = 24576;
    const std::size_t part = std::max<std::size_t>(1, cache / (corpus.stride() * sizeof(std::uint64_t)));
    std::atomic<std::size_t> next{0}, done{0};
    const auto work = [&](const Poll& poll) {
        for (std::size_t first; (first = next.fetch_add(together)) < n;) {
            const std::size_t last = std::min(n, first + together);
            for (std::size_t g = 0; g < corpus.groups(); g += part) {
                poll();
                const std::size_t count = std::min(part, corpus.groups() - g);
                for (std::size_t i = first; i < last; ++i) {
                    const auto least = least_of(&boards[i * planes], corpus.at(g), count, corpus.words());
                    distances[i] = std::min(distances[i], static_cast<std::int32_t>(least));
                }
            }
            done += last - first;
        }
    };
    on_threads(std::min(threads, (n + together - 1) / together), work, [&] { attend(done.load()); });
    return distances;
}

}  // namespace maskoban
