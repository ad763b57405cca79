"""Levels in the manner of the classic collections, for measuring the solver: rooms, corridors, goals to be packed.

    python benchmarks/classic_levels.py levels.sok                # the development set
    python benchmarks/classic_levels.py levels.sok --first 100    # other levels of the same kinds
    python benchmarks/classic_levels.py levels.sok --ablation     # what each technique of mode any is worth on a file
    python benchmarks/classic_levels.py benchmarks/warehouses.sok --solve --seconds 10

Every level is made backwards. Boxes stand on the goals and are pulled away one after the other, so each level has a
solution. Then more pulls tangle them: of a few random ones the best is taken that leaves the player little to push.

A set of cells is one Python integer with a bit a cell, row by row; the rim of the grid is always wall.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from time import process_time

from maskoban import _core
from maskoban.boards import Level, read, write
from maskoban.solving.replay import solves
from maskoban.solving.solver import Results


@dataclass(frozen=True)
class Kind:
    """What levels of one kind look like; ranges are of whole numbers, ends included."""

    height: tuple[int, int]
    width: tuple[int, int]
    rooms: tuple[int, int]
    side: tuple[int, int]  # of a room
    boxes: tuple[int, int]
    goal_rooms: int  # how many rooms hold the goals
    loops: int  # corridors beyond those that connect the rooms
    pillars: float  # share of a room's inner cells that become wall
    crowding: float  # boxes for each cell of floor, at most
    tangling: int  # pulls a box after all have left their goals
    tight: float  # share of the floor that is tried as wall in the end, and stays wall where the solution allows it


KINDS = {
    "small": Kind((6, 9), (7, 10), (1, 3), (2, 5), (4, 8), 2, 1, 0.12, 0.3, 12, 0.6),
    "packing": Kind((11, 17), (14, 20), (5, 8), (2, 5), (12, 30), 1, 2, 0.06, 0.25, 10, 0.3),
    "spread": Kind((10, 15), (12, 18), (4, 8), (2, 5), (10, 24), 3, 2, 0.08, 0.25, 12, 0.3),
}

#: How many levels of each kind are the development set.
SHARES = {"small": 40, "packing": 60, "spread": 40}


#: A box and the step it is pulled by.
Pull = tuple[int, int]


class Maze:
    """Walls and floor, and what can be walked and pulled on them."""

    def __init__(self, height: int, width: int) -> None:
        self.height, self.width = height, width
        self.floor = 0
        self.steps = (-width, width, -1, 1)

    def cell(self, row: int, column: int) -> int:
        return 1 << (row * self.width + column)

    def rectangle(self, top: int, left: int, height: int, width: int) -> int:
        row = ((1 << width) - 1) << left
        return sum(row << (r * self.width) for r in range(top, top + height))

    def spread(self, cells: int) -> int:
        return cells | cells << 1 | cells >> 1 | cells << self.width | cells >> self.width

    def reach(self, player: int, boxes: int) -> int:
        free, seen = self.floor & ~boxes, player
        while (more := self.spread(seen) & free) != seen:
            seen = more
        return seen

    def pulls(self, boxes: int, reach: int) -> list[tuple[int, int]]:
        """Box and step of every pull: the player stands beside the box and steps away, the box follows."""
        found = []
        for step in self.steps:
            able = boxes & _shift(reach, -step) & _shift(reach, -2 * step)
            found += [(box, step) for box in _each(able)]
        return found

    def pushes(self, boxes: int, reach: int) -> int:
        """How many pushes the player has."""
        free = self.floor & ~boxes
        return sum((boxes & _shift(reach, step) & _shift(free, -step)).bit_count() for step in self.steps)

    def pulled(self, boxes: int, reach: int, box: int) -> dict[int, tuple[int, list[Pull]]]:
        """Where this box can be pulled to, with the player's region then and the pulls that lead there."""
        seen = {(box, reach)}
        waiting: list[tuple[int, int, list[Pull]]] = [(box, reach, [])]
        found: dict[int, tuple[int, list[Pull]]] = {}
        others = boxes & ~box
        for at, region, path in waiting:
            for step in self.steps:
                there = _shift(at, step)
                if there & region and _shift(there, step) & region:
                    after = self.reach(_shift(there, step), others | there)
                    if (there, after) not in seen:
                        seen.add((there, after))
                        waiting.append((there, after, [*path, (at, step)]))
                        found.setdefault(there, (after, waiting[-1][2]))
        found.pop(box, None)
        return found


def _shift(cells: int, by: int) -> int:
    return cells << by if by > 0 else cells >> -by


def _each(cells: int) -> Iterator[int]:
    while cells:
        lowest = cells & -cells
        yield lowest
        cells ^= lowest


def _pick(rng: Random, cells: int) -> int:
    return rng.choice(list(_each(cells)))


def _carve(rng: Random, kind: Kind) -> tuple[Maze, list[int]] | None:
    """Rooms joined by corridors; the rooms as sets of cells, the one with the fewest doors first."""
    maze = Maze(rng.randint(*kind.height), rng.randint(*kind.width))
    rooms: list[tuple[int, int, int, int]] = []
    wanted = rng.randint(*kind.rooms)
    taken = 0
    for _ in range(200):
        height, width = (min(rng.randint(*kind.side), side - 2) for side in (maze.height, maze.width))
        top, left = rng.randint(1, maze.height - 1 - height), rng.randint(1, maze.width - 1 - width)
        room = maze.rectangle(top, left, height, width)
        if not maze.spread(room) & taken:
            rooms.append((top, left, height, width))
            taken |= maze.spread(room)
            if len(rooms) == wanted:
                break
    if len(rooms) < kind.rooms[0]:
        return None
    areas = [maze.rectangle(*room) for room in rooms]
    maze.floor = sum(areas)
    links = [(i, rng.randrange(i)) for i in range(1, len(rooms))]
    if len(rooms) > 2:
        links += [tuple(rng.sample(range(1, len(rooms)), 2)) for _ in range(rng.randint(0, kind.loops))]
    for one, other in links:
        maze.floor |= _corridor(rng, maze, rooms[one], rooms[other])
    for _ in range(int(kind.pillars * sum(areas).bit_count())):
        pillar = _pick(rng, sum(areas[1:]) & maze.floor if len(areas) > 1 else areas[0] & maze.floor)
        rest = maze.floor & ~pillar
        maze.floor = rest
        if maze.reach(_pick(rng, rest), 0) != rest:
            maze.floor |= pillar
    doors = [(maze.spread(area) & maze.floor & ~area).bit_count() for area in areas]
    order = sorted(range(len(areas)), key=lambda i: doors[i])
    return maze, [area for i in order if (area := areas[i] & maze.floor)]


def _corridor(
    rng: Random, maze: Maze, one: tuple[int, int, int, int], other: tuple[int, int, int, int]
) -> int:
    """An L from a cell of one room to a cell of the other."""
    (r1, c1), (r2, c2) = (
        (top + rng.randrange(height), left + rng.randrange(width))
        for top, left, height, width in (one, other)
    )
    if rng.random() < 0.5:
        (r1, c1), (r2, c2) = (r2, c2), (r1, c1)
    across = maze.rectangle(r1, min(c1, c2), 1, abs(c1 - c2) + 1)
    return across | maze.rectangle(min(r1, r2), c2, abs(r1 - r2) + 1, 1)


def _place_goals(rng: Random, maze: Maze, rooms: list[int], kind: Kind) -> int | None:
    boxes = rng.randint(*kind.boxes)
    areas = rooms[: min(kind.goal_rooms, len(rooms))]
    goals = 0
    for i, area in enumerate(areas):
        share = (boxes - goals.bit_count()) // (len(areas) - i)
        # A block that grows from a corner of the room, as packed as the room allows.
        block = _pick(rng, area)
        while block.bit_count() < share and (edge := maze.spread(block) & area & ~block):
            block |= max(
                _each(edge), key=lambda cell: ((maze.spread(cell) & block).bit_count(), rng.random())
            )
        goals |= block
    if not kind.boxes[0] <= goals.bit_count() or goals.bit_count() > kind.crowding * maze.floor.bit_count():
        return None
    return goals


@dataclass
class Play:
    """A game played backwards: the boxes, the player's region, and all pulls so far."""

    maze: Maze
    goals: int
    player: int  # where the game begins, which is where the solution ends
    boxes: int
    reach: int
    pulls: list[Pull]

    def try_pull(self, rng: Random, only_from: int, clearest: int = 1) -> bool:
        """Pull one of these boxes to a random cell off the goals; of so many tries take the least free position."""
        able = sorted({box for box, _ in self.maze.pulls(self.boxes, self.reach) if box & only_from})
        rng.shuffle(able)
        made = []
        for box in able:
            ends = self.maze.pulled(self.boxes, self.reach, box)
            away = [end for end in ends if not end & self.goals]
            if away:
                end = max(rng.choices(away, k=2), key=lambda end: len(ends[end][1]))
                made.append((self.boxes & ~box | end, *ends[end]))
                if len(made) == clearest:
                    break
        if not made:
            return False
        freedom = [self.maze.pushes(boxes, reach) + 2 * rng.random() for boxes, reach, _ in made]
        self.boxes, self.reach, path = made[freedom.index(min(freedom))]
        self.pulls += path
        return True

    def holds(self) -> bool:
        """Whether all pulls are still possible, now that there may be more walls."""
        boxes, reach = self.goals, self.maze.reach(self.player, self.goals)
        for box, step in self.pulls:
            there = _shift(box, step)
            if not (there & reach and _shift(there, step) & reach):
                return False
            boxes = boxes & ~box | there
            reach = self.maze.reach(_shift(there, step), boxes)
        self.boxes, self.reach = boxes, reach
        return True


def _play(rng: Random, maze: Maze, goals: int, kind: Kind) -> Play | None:
    """A game in which every box has left the goals and all have been tangled; walls are added to the maze."""
    player = _pick(rng, maze.floor & ~goals)
    play = Play(maze, goals, player, goals, maze.reach(player, goals), [])
    number = goals.bit_count()
    for _ in range(3 * number):
        if not play.boxes & goals:
            break
        # Where nothing can leave the goals, something else must go out of the way.
        if not play.try_pull(rng, goals) and not play.try_pull(rng, maze.floor):
            return None
    if (play.boxes & goals).bit_count() > number // 8:
        return None
    for _ in range(kind.tangling * number):
        play.try_pull(rng, maze.floor, clearest=4)
    free = list(_each(maze.floor & ~goals & ~play.boxes & ~player))
    for cell in rng.sample(free, int(kind.tight * len(free))):
        maze.floor &= ~cell
        if not play.holds():
            maze.floor |= cell
    play.holds()
    maze.floor &= maze.reach(player, 0)
    return play


def make(name: str, number: int) -> Level:
    """Level so and so of a kind; it depends on nothing else."""
    rng, kind = Random(f"{name} {number}"), KINDS[name]
    while True:
        carved = _carve(rng, kind)
        if carved is None:
            continue
        maze, rooms = carved
        goals = _place_goals(rng, maze, rooms, kind)
        if goals is None:
            continue
        play = _play(rng, maze, goals, kind)
        if play is None:
            continue
        level = Level.parse(_draw(maze, goals, play.boxes, _pick(rng, play.reach)))
        return replace(level, title=f"{name} {number}")


def _draw(maze: Maze, goals: int, boxes: int, player: int) -> str:
    lines = []
    for row in range(maze.height):
        line = ""
        for column in range(maze.width):
            cell = maze.cell(row, column)
            symbols = "#" if not cell & maze.floor else "*$. "[2 * (not cell & boxes) + (not cell & goals)]
            if cell & player:
                symbols = "+" if cell & goals else "@"
            line += symbols
        lines.append(line)
    return "\n".join(lines)


#: The techniques of mode any that can be left out, as native/outcome.hpp numbers them.
LEFT_OUT = {
    "nothing": 0,
    "relaxed game": 4,
    "corrals": 8,
    "assignment": 32,
    "plan from outside": 2,
    "plan from starts": 16,
    "search from the goals": 64,
    "feature search": 2 | 16 | 64,
    "search over pushes": 1,
}


def show_solved(file: Path, states: int, seconds: float, left_out: dict[str, int]) -> None:
    """Levels solved, and the CPU time it takes, with these techniques left out one at a time."""
    for name, without in left_out.items():
        solved = total = 0
        start = process_time()
        for level in read(file):
            found = _core.solve_boards(level.tokens[None], 0, states, 1024, seconds, 1, True, None, without)
            total += 1
            if Results.VERDICTS[found["verdicts"][0]] == "solved":
                assert found["solutions"] is not None
                assert solves(level, found["solutions"][0])
                solved += 1
        print(f"without {name}: {solved} of {total} solved, {process_time() - start:.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Make levels in the manner of the classic collections.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--first", type=int, default=0, help="the number of the first level of each kind")
    parser.add_argument("--ablation", action="store_true", help="solve the levels of the file instead")
    parser.add_argument(
        "--solve", action="store_true", help="solve the levels of the file with all techniques"
    )
    parser.add_argument("--states", type=int, default=20_000, help="give up on a level after so many states")
    parser.add_argument("--seconds", type=float, help="give up on a level after so many seconds instead")
    options = parser.parse_args()
    if options.ablation or options.solve:
        states = options.states if options.seconds is None else -1
        seconds = -1.0 if options.seconds is None else options.seconds
        show_solved(options.file, states, seconds, LEFT_OUT if options.ablation else {"nothing": 0})
        return
    numbers = ((name, options.first + i) for name, share in SHARES.items() for i in range(share))
    write(options.file, [make(name, number) for name, number in numbers])


if __name__ == "__main__":
    main()
