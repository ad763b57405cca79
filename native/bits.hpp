// A set of cells as a fixed number of 64-bit words, the number chosen at compile time.
// With one word (an 8x8 interior) every operation is a single machine instruction.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace maskoban {

template <int N>
struct Bits {
    std::array<std::uint64_t, N> w{};

    static Bits cell(int c) {
        Bits b;
        b.set(c);
        return b;
    }

    bool has(int c) const { return w[N == 1 ? 0 : c >> 6] >> (c & 63) & 1; }
    void set(int c) { w[N == 1 ? 0 : c >> 6] |= std::uint64_t{1} << (c & 63); }
    void clear(int c) { w[N == 1 ? 0 : c >> 6] &= ~(std::uint64_t{1} << (c & 63)); }

    bool any() const {
        std::uint64_t all = 0;
        for (int i = 0; i < N; ++i) all |= w[i];
        return all != 0;
    }
    bool none() const { return !any(); }
    bool within(const Bits& b) const { return (*this - b).none(); }
    int count() const {
        int n = 0;
        for (int i = 0; i < N; ++i) n += std::popcount(w[i]);
        return n;
    }
    // The lowest cell; the set must not be empty.
    int lowest() const {
        if constexpr (N == 1) {
            return std::countr_zero(w[0]);
        } else {
            int i = 0;
            while (w[i] == 0) ++i;
            return i * 64 + std::countr_zero(w[i]);
        }
    }

    friend Bits operator&(Bits a, const Bits& b) {
        for (int i = 0; i < N; ++i) a.w[i] &= b.w[i];
        return a;
    }
    friend Bits operator|(Bits a, const Bits& b) {
        for (int i = 0; i < N; ++i) a.w[i] |= b.w[i];
        return a;
    }
    // The cells of a that are not in b.
    friend Bits operator-(Bits a, const Bits& b) {
        for (int i = 0; i < N; ++i) a.w[i] &= ~b.w[i];
        return a;
    }
    Bits& operator|=(const Bits& b) { return *this = *this | b; }
    Bits& operator-=(const Bits& b) { return *this = *this - b; }
    friend bool operator==(const Bits& a, const Bits& b) {
        std::uint64_t differ = 0;
        for (int i = 0; i < N; ++i) differ |= a.w[i] ^ b.w[i];
        return differ == 0;
    }

    // Every cell's number raised or lowered by s, 0 < s <= 64 (a board is at most 64 wide; with one word, 63).
    Bits raised(int s) const {
        Bits b;
        if constexpr (N == 1) {
            b.w[0] = w[0] << s;
        } else if (s == 64) {
            for (int i = N - 1; i > 0; --i) b.w[i] = w[i - 1];
        } else {
            for (int i = N - 1; i > 0; --i) b.w[i] = w[i] << s | w[i - 1] >> (64 - s);
            b.w[0] = w[0] << s;
        }
        return b;
    }
    Bits lowered(int s) const {
        Bits b;
        if constexpr (N == 1) {
            b.w[0] = w[0] >> s;
        } else if (s == 64) {
            for (int i = 0; i < N - 1; ++i) b.w[i] = w[i + 1];
        } else {
            for (int i = 0; i < N - 1; ++i) b.w[i] = w[i] >> s | w[i + 1] << (64 - s);
            b.w[N - 1] = w[N - 1] >> s;
        }
        return b;
    }

    std::uint64_t hash(std::uint64_t seed) const {
        std::uint64_t h = seed * 0x9E3779B97F4A7C15u;
        for (int i = 0; i < N; ++i) {
            h ^= w[i];
            h *= 0xD6E8FEB86659FD93u;
            h ^= h >> 32;
        }
        return h * 0xD6E8FEB86659FD93u;
    }
};

// Calls visit(cell) for every cell of the set, lowest first: row by row on a board.
template <int N, class Visit>
void each(const Bits<N>& set, Visit visit) {
    for (int i = 0; i < N; ++i)
        for (std::uint64_t rest = set.w[i]; rest != 0; rest &= rest - 1)
            visit(i * 64 + std::countr_zero(rest));
}

}  // namespace maskoban
