"""Vertices that reach each other: Tarjan's strongly connected components, without recursion."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

Children = Mapping[Hashable, Sequence[Hashable]]


def strong_components(children: Children) -> Iterator[frozenset[Hashable]]:
    """Each set of vertices on a common circle; a vertex alone only if it leads to itself."""
    search = _Search(children)
    for root in children:
        if root not in search.index:
            yield from search.run(root)


class _Search:
    """A depth-first walk that remembers how far back each vertex reaches."""

    def __init__(self, children: Children) -> None:
        self.index: dict[Hashable, int] = {}
        self._children = children
        self._low: dict[Hashable, int] = {}
        self._stack: list[Hashable] = []
        self._on_stack: set[Hashable] = set()
        self._path: list[tuple[Hashable, Iterator[Hashable]]] = []

    def run(self, root: Hashable) -> Iterator[frozenset[Hashable]]:
        self._enter(root)
        while self._path:
            vertex, rest = self._path[-1]
            child = next(rest, None)
            if child is None:
                yield from self._leave(vertex)
            elif child not in self.index:
                self._enter(child)
            elif child in self._on_stack:
                self._low[vertex] = min(self._low[vertex], self.index[child])

    def _enter(self, vertex: Hashable) -> None:
        self.index[vertex] = self._low[vertex] = len(self.index)
        self._stack.append(vertex)
        self._on_stack.add(vertex)
        self._path.append((vertex, iter(self._children.get(vertex, ()))))

    def _leave(self, vertex: Hashable) -> Iterator[frozenset[Hashable]]:
        self._path.pop()
        if self._path:
            parent = self._path[-1][0]
            self._low[parent] = min(self._low[parent], self._low[vertex])
        if self._low[vertex] != self.index[vertex]:
            return
        members: list[Hashable] = []
        while not members or members[-1] != vertex:
            members.append(self._stack.pop())
            self._on_stack.discard(members[-1])
        if len(members) > 1 or vertex in self._children.get(vertex, ()):
            yield frozenset(members)
