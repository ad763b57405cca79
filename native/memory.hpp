// All the memory one search may use: blocks of states, and the table that finds a state again.
// One Memory serves board after board, so that small boards pay neither allocation nor clearing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace maskoban {

class Memory {
public:
    static constexpr std::size_t BLOCK = std::size_t{1} << 18;
    static constexpr std::size_t FIRST_SLOTS = std::size_t{1} << 11;

    explicit Memory(std::size_t limit) : limit_(limit) {}

    // Block number i, allocated when first asked for; null when the limit forbids it.
    std::byte* block(std::size_t i) {
        if (i < blocks_.size()) return blocks_[i].get();
        if (!fits(BLOCK)) return nullptr;
        blocks_.emplace_back(new std::byte[BLOCK]);
        used_ += BLOCK;
        return blocks_.back().get();
    }

    // `count` empty slots (a power of two); null when the limit forbids it.
    std::uint64_t* slots(std::size_t count) {
        if (count > allocated_) {
            const std::size_t more = (count - allocated_) * sizeof(std::uint64_t);
            if (!fits(more)) return nullptr;
            slots_.reset();  // the old ones go first: every state can be put back from the blocks
            slots_.reset(new std::uint64_t[count]());
            used_ += more;
            allocated_ = count;
            generation_ = 0;
        }
        if (++generation_ == 1 << 16) {
            std::fill(slots_.get(), slots_.get() + allocated_, std::uint64_t{0});
            generation_ = 1;
        }
        return slots_.get();
    }

    // Counts what a search keeps for itself; false when the limit forbids it. Given back with release().
    bool claim(std::size_t bytes) {
        if (!fits(bytes)) return false;
        used_ += bytes;
        claimed_ += bytes;
        return true;
    }
    void release() { release(claimed_); }
    void release(std::size_t bytes) {
        used_ -= bytes;
        claimed_ -= bytes;
    }

    std::size_t limit() const { return limit_; }

    // A slot is empty unless it carries this stamp: a new generation empties the whole table at once.
    std::uint64_t generation() const { return generation_; }

private:
    bool fits(std::size_t more) const { return used_ + more <= limit_; }

    std::size_t limit_, used_ = 0, allocated_ = 0, claimed_ = 0;
    std::vector<std::unique_ptr<std::byte[]>> blocks_;
    std::unique_ptr<std::uint64_t[]> slots_;
    std::uint64_t generation_ = 0;
};

// A row of values that grows by blocks, so that they stay where they are; blocks are claimed.
template <class T>
class Pool {
public:
    explicit Pool(Memory& memory) : memory_(memory) {}

    std::size_t size() const { return size_; }
    T& operator[](std::size_t i) { return blocks_[i / PER_BLOCK][i % PER_BLOCK]; }
    const T& operator[](std::size_t i) const { return blocks_[i / PER_BLOCK][i % PER_BLOCK]; }

    // False when memory is used up.
    bool add(const T& value) {
        if (size_ == blocks_.size() * PER_BLOCK) {
            if (!memory_.claim(PER_BLOCK * sizeof(T))) return false;
            blocks_.emplace_back(new T[PER_BLOCK]);
        }
        (*this)[size_++] = value;
        return true;
    }

private:
    static constexpr std::size_t PER_BLOCK = (std::size_t{1} << 15) / sizeof(T);

    Memory& memory_;
    std::vector<std::unique_ptr<T[]>> blocks_;
    std::size_t size_ = 0;
};

// The states of one search in order of discovery, each found again by its boxes and its player's region.
// Node needs hash() and same().
template <class Node>
class States {
public:
    static constexpr std::uint32_t NONE = 0xFFFFFFFFu;

    explicit States(Memory& memory) : memory_(memory) {
        slots_ = memory_.slots(Memory::FIRST_SLOTS);
        mask_ = Memory::FIRST_SLOTS - 1;
    }

    std::uint32_t size() const { return size_; }
    std::size_t bytes() const { return blocks_.size() * Memory::BLOCK + (mask_ + 1) * sizeof(std::uint64_t); }
    Node& operator[](std::uint32_t i) { return blocks_[i / PER_BLOCK][i % PER_BLOCK]; }

    struct Found {
        std::uint32_t index;  // NONE: memory is used up
        bool fresh;
    };

    // Finds the state, or stores it.
    Found add(const Node& node) {
        const std::uint64_t hash = node.hash();
        std::uint64_t* slot = nullptr;
        if (slots_ == nullptr) return {NONE, false};
        const std::uint32_t seen = find(node, hash, slot);
        if (seen != NONE) return {seen, false};
        if (size_ * std::size_t{2} > mask_) {
            if (grow()) find(node, hash, slot);
            // Where the table may not grow it may still fill up some more.
            else if (size_ > mask_ - mask_ / 8) return {NONE, false};
        }
        if (size_ / PER_BLOCK == blocks_.size()) {
            std::byte* block = memory_.block(blocks_.size());
            if (block == nullptr || size_ >= NONE - 1) return {NONE, false};
            blocks_.push_back(reinterpret_cast<Node*>(block));
        }
        *slot = stamp(hash) | size_;
        new (&(*this)[size_]) Node(node);
        return {size_++, true};
    }

private:
    static constexpr auto PER_BLOCK = static_cast<std::uint32_t>(Memory::BLOCK / sizeof(Node));

    // Slot: 16 bits of hash, 16 bits of generation, 32 bits of state number.
    std::uint64_t stamp(std::uint64_t hash) const {
        return (hash & 0xFFFF000000000000u) | memory_.generation() << 32;
    }

    std::uint32_t find(const Node& node, std::uint64_t hash, std::uint64_t*& slot) {
        const std::uint64_t wanted = stamp(hash) >> 32, generation = memory_.generation();
        for (std::size_t i = (hash >> 16) & mask_;; i = (i + 1) & mask_) {
            const std::uint64_t there = slots_[i];
            if ((there >> 32 & 0xFFFF) != generation) {
                slot = &slots_[i];
                return NONE;
            }
            if (there >> 32 == wanted) {
                const auto index = static_cast<std::uint32_t>(there);
                if ((*this)[index].same(node)) return index;
            }
        }
    }

    bool grow() {
        const std::size_t count = (mask_ + 1) * (mask_ < 1 << 20 ? 4 : 2);
        std::uint64_t* more = memory_.slots(count);
        if (more == nullptr) return false;
        slots_ = more;
        mask_ = count - 1;
        for (std::uint32_t i = 0; i < size_; ++i) {
            const std::uint64_t hash = (*this)[i].hash();
            std::size_t at = (hash >> 16) & mask_;
            while ((slots_[at] >> 32 & 0xFFFF) == memory_.generation()) at = (at + 1) & mask_;
            slots_[at] = stamp(hash) | i;
        }
        return true;
    }

    Memory& memory_;
    std::vector<Node*> blocks_;
    std::uint64_t* slots_ = nullptr;
    std::size_t mask_ = 0;
    std::uint32_t size_ = 0;
};

}  // namespace maskoban
