// Many games on boards of one size, stepped together: the native side of maskoban/environment/games.py.
//
// NumPy owns every array. A step writes observations, rewards and flags in place and allocates nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "crew.hpp"
#include "play.hpp"

namespace maskoban::environment {

// One row of the (n, 8) array of games.
struct Game {
    std::int32_t on_goals;       // boxes on goals; this and the next three are the counts that a Move adds to
    std::int32_t moves, pushes;  // as players count them: every push is a move
    std::int32_t steps;          // actions taken, those that changed nothing too
    std::int32_t boxes;          // all of them
    std::int32_t cell;           // where the player stands
    std::int32_t row;            // of the level in the supply, or -1
    std::int32_t episode;        // episodes begun in this slot since it was seeded
};
inline constexpr std::size_t GAME = 8;
static_assert(sizeof(Game) == GAME * sizeof(std::int32_t));

// One row of the (n, 3) array of what is known of the level of each game.
struct LevelFacts {
    std::int32_t index;           // its number in the source, or -1
    std::int32_t plays;           // episodes on it so far, this one included
    std::int32_t optimal_pushes;  // or -1
};
inline constexpr std::size_t LEVEL = 3;
static_assert(sizeof(LevelFacts) == LEVEL * sizeof(std::int32_t));

enum Autoreset { NEXT_STEP, SAME_STEP, DISABLED };
enum Kind { TOKENS, PLANES, BOXOBAN, RGB };

// How observations look: `tiles` are the pictures of the tiles, `pixels` by `pixels` of three bytes.
struct Look {
    Kind kind;
    int pixels;
    std::vector<std::uint8_t> tiles;

    std::size_t bytes(int cells) const {
        const int per_cell = kind == PLANES ? 7 : kind == BOXOBAN ? 4 : kind == RGB ? 3 * pixels * pixels : 1;
        return static_cast<std::size_t>(cells) * static_cast<std::size_t>(per_cell);
    }
};

// Where the planes of the three tiles of a move begin in an observation, before and after it.
struct alignas(32) Planes {
    std::int32_t before[3], after[3];
};

// A game of a block in which the player moved, the key of the move, and the player's cell before and after it.
struct Moved {
    std::uint16_t game, key, here, there;
};

// What a step returns, besides observations.
struct Results {
    double* rewards;
    bool *terminated, *truncated;
};

// The arrays of the games, a row each. The final ones hold the last values of episodes that ended in the same step in
// which the next ones began; they are null unless the mode is SAME_STEP.
struct Arrays {
    std::uint8_t *tokens, *observations, *levels;
    Game* games;
    LevelFacts* level_facts;
    Results results;
    bool *ended, *began;
    std::uint64_t* seeds;
    std::uint8_t* final_observations;
    Game* final_games;
    LevelFacts* final_level_facts;
};

// Where the supply of levels stands; Python owns it, too.
struct Progress {
    std::int64_t start, filled;  // the ring holds boards start to filled - 1
    std::int64_t played;         // episodes since the window moved
    std::int64_t episodes;       // episodes begun
    std::int64_t refresh_at;     // no step is taken from so many episodes on, until Python refreshes the supply
};

// The levels to play: a ring of `rows` boards. The first `window` boards from `start` on are in play, and each episode
// takes one of them. After `reuse` episodes the window moves on by one board, if there is another.
struct Supply {
    const std::uint8_t* boards = nullptr;
    const std::int32_t* numbers = nullptr;
    const std::int32_t* optimal_pushes = nullptr;  // or null
    const double* cumulative = nullptr;            // weights of the rows, added up; null: all have the same
    std::int32_t *plays = nullptr, *ended = nullptr, *solved = nullptr;
    Progress* progress = nullptr;
    std::int64_t rows = 0, window = 1, reuse = 1;

    // The row of a level for an episode; `random` is uniform over 64 bits.
    std::int64_t pick(std::uint64_t random) {
        if (!progress) throw std::invalid_argument("no levels to play");
        Progress& p = *progress;
        if (p.played >= reuse && p.start + window < p.filled) ++p.start, p.played = 0;
        const std::int64_t open = std::min(window, p.filled - p.start);
        if (open < 1) throw std::invalid_argument("no levels to play");
        std::int64_t row = p.start;
        if (cumulative) {
            const double point = static_cast<double>(random >> 11) * 0x1p-53 * cumulative[rows - 1];
            row = std::min<std::int64_t>(std::upper_bound(cumulative, cumulative + rows, point) - cumulative, rows - 1);
        } else if (open > 1) {
            row += static_cast<std::int64_t>((random >> 32) * static_cast<std::uint64_t>(open) >> 32);
        }
        ++p.episodes, ++p.played;
        row %= rows;
        ++plays[row];
        return row;
    }
};

// A random number that depends on a slot's seed and a count only (splitmix64): no slot depends on the others.
inline std::uint64_t mix(std::uint64_t seed, std::uint64_t number) {
    std::uint64_t z = seed + (number + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

class Games {
public:
    Games(std::size_t n, int height, int width, const Arrays& arrays, Look look, std::vector<std::uint8_t> directions,
          std::int32_t limit, Autoreset mode, std::size_t threads)
        : n_(n), cells_(height * width), width_(width), a_(arrays), look_(std::move(look)), size_(look_.bytes(cells_)),
          directions_(std::move(directions)), limit_(limit), mode_(mode), neighbours_(height, width),
          crew_(threads, (n + SHARE - 1) / SHARE), found_(crew_.pieces()) {
        for (int key = 0; key < 128; ++key) {
            const Move& move = MOVES[static_cast<std::size_t>(key)];
            const int player = key & 64 ? PLAYER_ON_GOAL : PLAYER;
            planes_[static_cast<std::size_t>(key)] = {
                {player * cells_, (key >> 3 & 7) * cells_, (key & 7) * cells_},
                {move.here * cells_, move.there * cells_, move.beyond * cells_}};
        }
        ended_.reserve(n), begun_.reserve(n);
        for (auto& found : found_) found.reserve(SHARE);
        for (std::size_t i = 0; i < n; ++i) {  // the games of a pickled environment, for example
            const std::int32_t cell = a_.games[i].cell;
            if (cell < 0 || cell >= cells_) throw std::invalid_argument("a player stands outside its board");
            if (a_.ended[i]) ended_.push_back(static_cast<std::int32_t>(i));
            if (a_.began[i]) begun_.push_back(static_cast<std::int32_t>(i));
        }
    }

    Supply supply;

    bool any_final() const { return mode_ == SAME_STEP && !ended_.empty(); }
    bool refresh_due() const { return !supply.progress || supply.progress->episodes >= supply.progress->refresh_at; }

    // Refuses actions that are not in range: before any board changes.
    void check(const std::int64_t* actions, std::size_t count) const {
        std::uint64_t largest = 0;
        for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, static_cast<std::uint64_t>(actions[i]));
        if (largest < directions_.size()) return;
        throw std::invalid_argument("actions: expected 0 to " + std::to_string(directions_.size() - 1) + ", got " +
                                    std::to_string(static_cast<std::int64_t>(largest)));
    }

    // Refuses a step where an episode is over and nothing begins the next one.
    void check_ended() const {
        if (mode_ == DISABLED && !ended_.empty())
            throw std::invalid_argument(
                "an episode is over; reset it with options={'reset_mask': ...} before the next step");
    }

    // One step of every game; the actions were checked. Null: random actions, by each slot's seed.
    void step(const std::int64_t* actions) { step(actions, a_.results); }

    void step(const std::int64_t* actions, const Results& results) {
        for (const std::int32_t i : begun_) a_.began[i] = false;
        begun_.clear();
        for (const std::int32_t i : ended_) {
            a_.ended[i] = false;
            if (mode_ == SAME_STEP) {
                a_.final_games[i] = Game{};
                a_.final_level_facts[i] = LevelFacts{};
            } else {
                begin(i);
                results.rewards[i] = 0;
                results.terminated[i] = results.truncated[i] = false;
            }
        }
        ended_.clear();
        if (crew_.threads() == 1) {
            play(0, n_, actions, results, ended_);
        } else {
            crew_.run([&](std::size_t k) {
                found_[k].clear();
                play(k * SHARE, std::min(n_, (k + 1) * SHARE), actions, results, found_[k]);
            });
            for (const auto& found : found_) ended_.insert(ended_.end(), found.begin(), found.end());
        }
        for (const std::int32_t i : ended_) end(i, results.terminated[i]);
    }

    // One step of the first game, which goes on after its end until it is reset.
    void step_first(std::int64_t action) {
        ended_.clear();
        a_.began[0] = false;
        play(0, 1, &action, a_.results, ended_);
        if (!ended_.empty() && !a_.ended[0]) end(0, a_.results.terminated[0]);
    }

    // Begin an episode in a slot, on the next level of the supply.
    void begin(std::int32_t i) {
        const std::int64_t row = supply.pick(mix(a_.seeds[i], static_cast<std::uint32_t>(a_.games[i].episode)));
        begin_on(i, supply.boards + row * cells_);
        a_.games[i].row = static_cast<std::int32_t>(row);
        const std::int32_t optimal_pushes = supply.optimal_pushes ? supply.optimal_pushes[row] : -1;
        a_.level_facts[i] = {supply.numbers[row], supply.plays[row], optimal_pushes};
    }

    // Begin an episode in a slot, on this board, of which nothing is known.
    void begin_on(std::int32_t i, const std::uint8_t* board) {
        const std::size_t cells = static_cast<std::size_t>(cells_), at = static_cast<std::size_t>(i) * cells;
        std::memcpy(a_.tokens + at, board, cells);
        std::memcpy(a_.levels + at, board, cells);
        Game game{};
        for (std::size_t c = 0; c < cells; ++c) {
            game.cell = std::max(game.cell, is_player(board[c]) ? static_cast<std::int32_t>(c) : 0);
            game.boxes += is_box(board[c]);
            game.on_goals += board[c] == BOX_ON_GOAL;
        }
        game.row = -1;
        game.episode = a_.games[i].episode + 1;
        a_.games[i] = game;
        a_.level_facts[i] = {-1, 0, -1};
        if (!a_.began[i]) begun_.push_back(i);
        a_.began[i] = true;
        draw_board(i);
    }

    // Before slots are reset: their episodes do not count as ended any more, and none counts as just begun.
    void clear(const bool* slots) {
        for (const std::int32_t i : begun_) a_.began[i] = false;
        begun_.clear();
        std::erase_if(ended_, [slots](std::int32_t i) { return slots[i]; });
        for (std::size_t i = 0; i < n_; ++i)
            if (slots[i]) a_.ended[i] = a_.results.terminated[i] = a_.results.truncated[i] = false;
    }

    const Game& first() const { return a_.games[0]; }
    double first_reward() const { return a_.results.rewards[0]; }

private:
    static constexpr std::size_t BLOCK = 64;   // games whose changes are written together
    static constexpr std::size_t SHARE = 256;  // games that a thread takes at a time: a microsecond or two

    void end(std::int32_t i, bool solved) {
        const Game& game = a_.games[i];
        a_.ended[i] = true;
        // The board may have left the ring meanwhile.
        if (game.row >= 0 && supply.numbers[game.row] == a_.level_facts[i].index) {
            ++supply.ended[game.row];
            supply.solved[game.row] += solved;
        }
        if (mode_ != SAME_STEP) return;
        const std::size_t at = static_cast<std::size_t>(i) * size_;
        std::memcpy(a_.final_observations + at, a_.observations + at, size_);
        a_.final_games[i] = game;
        a_.final_level_facts[i] = a_.level_facts[i];
        begin(i);
    }

    void play(std::size_t from, std::size_t to, const std::int64_t* actions, const Results& results,
              std::vector<std::int32_t>& ended) {
        switch (look_.kind) {
            case TOKENS: return play_as<TOKENS>(from, to, actions, results, ended);
            case PLANES: return play_as<PLANES>(from, to, actions, results, ended);
            case BOXOBAN: return play_as<BOXOBAN>(from, to, actions, results, ended);
            case RGB: return play_as<RGB>(from, to, actions, results, ended);
        }
    }

    // Observations other than tokens are not drawn game by game: the games in which the player moved are listed first.
    // So a game where nothing moves costs no branch, and no game waits for the drawing of the one before it.
    template <Kind kind>
    void play_as(std::size_t from, std::size_t to, const std::int64_t* actions, const Results& results,
                 std::vector<std::int32_t>& ended) {
        const Arrays a = a_;  // a copy: the compiler knows that no write to a board changes it
        const std::size_t cells = static_cast<std::size_t>(cells_), size = size_;
        const std::int32_t limit = limit_;
        std::array<Moved, BLOCK + 1> list;
        for (std::size_t block = from; block < to; block += BLOCK) {
            Moved* moved = list.data();
            for (std::size_t i = block, stop = std::min(to, block + BLOCK); i < stop; ++i) {
                if (a.began[i]) continue;
                Game& game = a.games[i];
                const std::size_t action = actions ? static_cast<std::size_t>(actions[i]) : random(i);
                const std::uint16_t* const next = neighbours_[directions_[action]];
                std::uint8_t* const tokens = a.tokens + i * cells;
                const int here = game.cell, there = next[here], beyond = next[there];
                const std::uint8_t old_here = tokens[here], old_there = tokens[there], old_beyond = tokens[beyond];
                const std::size_t key = move_key(old_here, old_there, old_beyond);
                const Move& move = MOVES[key];
                tokens[beyond] = move.beyond, tokens[there] = move.there, tokens[here] = move.here;
                if constexpr (kind != TOKENS) {
                    *moved = {static_cast<std::uint16_t>(i - block), static_cast<std::uint16_t>(key),
                              static_cast<std::uint16_t>(here), static_cast<std::uint16_t>(there)};
                    moved += move.moved;
                }
                game.cell = move.moved ? there : here;
                game.on_goals += move.goals, game.moves += move.moved, game.pushes += move.pushed;
                game.steps += move.steps;
                const bool solved = game.on_goals == game.boxes, cut = game.steps >= limit;
                results.rewards[i] = STEP_REWARD + move.goals + (solved ? SOLVED_REWARD : 0);
                results.terminated[i] = solved, results.truncated[i] = cut;
                if (solved | cut) ended.push_back(static_cast<std::int32_t>(i));
            }
            std::uint8_t* const observations = a.observations + block * size;
            for (const Moved* each = list.data(); each != moved; ++each)
                draw_move<kind>(observations + each->game * size, *each);
        }
    }

    // What a move changes in an observation.
    template <Kind kind>
    void draw_move(std::uint8_t* observation, const Moved& moved) const {
        const Move& move = MOVES[moved.key];
        const int here = moved.here, there = moved.there, beyond = there + (there - here);
        if constexpr (kind == PLANES) {
            const Planes& planes = planes_[moved.key];
            const auto change = [&planes](int k, std::uint8_t* cell) {
                cell[planes.before[k]] = 0, cell[planes.after[k]] = 1;
            };
            change(0, observation + here), change(1, observation + there);
            if (move.pushed) change(2, observation + beyond);
        } else if constexpr (kind == BOXOBAN) {  // walls and goals never change
            observation[here] = 0, observation[there] = 1;
            if (move.pushed) observation[2 * cells_ + there] = 0, observation[2 * cells_ + beyond] = 1;
        } else if constexpr (kind == RGB) {
            draw_tile(observation, here, move.here), draw_tile(observation, there, move.there);
            if (move.pushed) draw_tile(observation, beyond, move.beyond);
        }
    }

    // A random action; it depends on the slot's seed and the numbers of its episode and step only.
    std::size_t random(std::size_t i) const {
        const auto episode = static_cast<std::uint32_t>(a_.games[i].episode);
        const auto step = static_cast<std::uint32_t>(a_.games[i].steps);
        return (mix(~a_.seeds[i], std::uint64_t{episode} << 32 | step) >> 32) * directions_.size() >> 32;
    }

    void draw_tile(std::uint8_t* observation, int cell, std::uint8_t tile) const {
        const int pixels = look_.pixels, line = 3 * pixels;
        const std::uint8_t* from = look_.tiles.data() + tile * line * pixels;
        if (pixels == 1) {
            std::memcpy(observation + 3 * cell, from, 3);
            return;
        }
        std::uint8_t* to = observation + (cell / width_ * pixels * width_ + cell % width_) * line;
        for (int y = 0; y < pixels; ++y, from += line, to += line * width_)
            std::memcpy(to, from, static_cast<std::size_t>(line));
    }

    void draw_board(std::int32_t i) {
        const std::uint8_t* const tokens = a_.tokens + static_cast<std::size_t>(i) * static_cast<std::size_t>(cells_);
        std::uint8_t* const observation = a_.observations + static_cast<std::size_t>(i) * size_;
        const int cells = cells_;
        const auto draw_plane = [=](int plane, const auto& holds) {
            std::uint8_t* const to = observation + plane * cells;
            for (int c = 0; c < cells; ++c) to[c] = holds(tokens[c]);
        };
        switch (look_.kind) {
            case TOKENS: return;  // the tokens are the observation
            case PLANES:
                for (std::uint8_t plane = 0; plane < 7; ++plane)
                    draw_plane(plane, [plane](std::uint8_t tile) { return tile == plane; });
                return;
            case BOXOBAN:
                draw_plane(0, [](std::uint8_t tile) { return is_player(tile); });
                draw_plane(1, [](std::uint8_t tile) { return tile == WALL; });
                draw_plane(2, [](std::uint8_t tile) { return is_box(tile); });
                draw_plane(3, [](std::uint8_t tile) { return is_goal(tile); });
                return;
            case RGB:
                for (int c = 0; c < cells; ++c) draw_tile(observation, c, tokens[c]);
        }
    }

    std::size_t n_;
    int cells_, width_;
    Arrays a_;
    Look look_;
    std::size_t size_;                       // bytes of one observation
    std::array<Planes, 128> planes_;        // of every move
    std::vector<std::uint8_t> directions_;  // by action
    std::int32_t limit_;
    Autoreset mode_;
    Neighbours neighbours_;
    Crew crew_;
    std::vector<std::int32_t> ended_, begun_;       // slots, as of the last step
    std::vector<std::vector<std::int32_t>> found_;  // the slots that ended, for each share of them
};

}  // namespace maskoban::environment
