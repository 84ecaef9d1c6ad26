"""This file finds the heaviest tree over the words of a sentence."""

import numpy as np
from numpy.typing import NDArray

from attnstore.reduce.pieces import Index


def maximum_arborescence(weights: NDArray[np.float64], root: int) -> Index:
    """The governor [node] of every node in the heaviest tree away from `root`, whose own entry is -1.

    `weights` [dependent, governor]; the diagonal is not read (Chu and Liu 1965, Edmonds 1967). Where single choices
    tie, the lowest governor is taken.
    """
    weights = weights.copy()
    np.fill_diagonal(weights, -np.inf)
    governor: Index = weights.argmax(axis=1)
    governor[root] = -1
    cycle = _cycle(governor)
    if not cycle.size:
        return governor
    # The cycle becomes one node, the last. Who enters it displaces one choice within, and pays for that.
    outside = np.setdiff1d(np.arange(len(weights)), cycle)
    entering = weights[cycle[:, None], outside] - weights[cycle, governor[cycle]][:, None]
    leaving = weights[outside[:, None], cycle]
    contracted = np.block(
        [
            [weights[outside[:, None], outside], leaving.max(axis=1)[:, None]],
            [entering.max(axis=0), np.array([-np.inf])],
        ]
    )
    inner = maximum_arborescence(contracted, int(np.searchsorted(outside, root)))
    names = np.append(outside, -1)
    governor[outside] = names[inner[:-1]]
    governed = inner[:-1] == len(outside)
    governor[outside[governed]] = cycle[leaving.argmax(axis=1)[governed]]
    governor[cycle[entering[:, inner[-1]].argmax()]] = outside[inner[-1]]
    governor[root] = -1
    return governor


def maximum_spanning_tree(weights: NDArray[np.float64]) -> Index:
    """The node that each node [node] is tied to in the heaviest tree without directions; -1 for node 0.

    `weights` [node, node], symmetric; the diagonal is not read (Prim 1957).
    """
    tied = np.full(len(weights), -1, np.intp)
    best = weights[0].copy()  # from each node outside the tree to the tree
    nearest = np.zeros(len(weights), np.intp)
    best[0] = -np.inf
    for _ in range(len(weights) - 1):
        node = int(best.argmax())
        tied[node] = nearest[node]
        best[node] = -np.inf
        closer = (weights[node] > best) & (best > -np.inf)
        best[closer], nearest[closer] = weights[node][closer], node
    return tied


def _cycle(governor: Index) -> Index:
    """The nodes of a cycle, in ascending order; none where every node leads to the root."""
    leads_on = np.zeros(len(governor), bool)
    for start in range(len(governor)):
        path: dict[int, None] = {}
        node = start
        while node >= 0 and not leads_on[node]:
            if node in path:
                walked = list(path)
                return np.sort(np.array(walked[walked.index(node) :], np.intp))
            path[node] = None
            node = int(governor[node])
        leads_on[list(path)] = True
    return np.zeros(0, np.intp)
