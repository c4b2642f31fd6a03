"""Exact pairing of two-seat rounds: the perfect matching of least cost."""

from __future__ import annotations

from operator import itemgetter

import rustworkx

from arena.luck import Stream
from arena.schedule.costs import Costs, Field

_LOT_BITS = 40


def match_pairs(field: Field, costs: Costs, stream: Stream) -> tuple[list[list[int]], list[int]]:
    """Return (pairs, byes) of least cost; with an odd field, one of the least burdened has the bye.

    A lot on every edge makes the optimum unique (but for a chance of about edges / 2**40), so that the
    result does not hang on the order in which the solver looks at equal ones.
    """
    edges = [(i, j, int(costs.pair[i, j])) for i in range(field.size) for j in range(i)]
    if field.size % 2:
        least = min(field.burden)
        nobody = field.size
        edges += [(i, nobody, int(costs.short[i])) for i in range(nobody) if field.burden[i] == least]
    priced = [(i, j, cost << _LOT_BITS | stream.below(1 << _LOT_BITS)) for i, j, cost in edges]
    top = max(map(itemgetter(2), priced))
    graph = rustworkx.PyGraph(multigraph=False)
    graph.add_nodes_from(range(field.size + field.size % 2))
    graph.add_edges_from([(i, j, top - price) for i, j, price in priced])
    matched = sorted(sorted(edge) for edge in rustworkx.max_weight_matching(graph, max_cardinality=True, weight_fn=int))
    byes = [i for i, j in matched if j == field.size]
    return [[i, j] for i, j in matched if j < field.size], byes
