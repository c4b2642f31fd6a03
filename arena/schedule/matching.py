"""Exact pairing of two-seat rounds: the perfect matching of least cost."""

from __future__ import annotations

import rustworkx

from arena.luck import Stream
from arena.schedule.costs import Costs, Field

_LOT_BITS = 40


def match_pairs(field: Field, costs: Costs, stream: Stream) -> tuple[list[list[int]], list[int]]:
    """Return (pairs, byes) of least cost; with an odd field, one of the least burdened has the bye.

    A lot on every edge makes the optimum unique (but for a chance of about edges / 2**40). It is needed: rustworkx
    walks a randomly seeded hash map of equally good edges, though it takes 0.6 s of a round of 500, not 0.1 s.
    """
    pair = costs.pair.tolist()
    edges = [(i, j, pair[i][j]) for i in range(field.size) for j in range(i)]
    if field.size % 2:
        least = min(field.burden)
        nobody = field.size
        edges += [(i, nobody, int(costs.short[i])) for i in range(nobody) if field.burden[i] == least]
    top = int(max(costs.pair.max(), costs.short.max())) + 1 << _LOT_BITS
    graph = rustworkx.PyGraph(multigraph=False)
    graph.add_nodes_from(range(field.size + field.size % 2))
    graph.add_edges_from([(i, j, top - (cost << _LOT_BITS | stream.word() >> 64 - _LOT_BITS)) for i, j, cost in edges])
    matched = sorted(sorted(edge) for edge in rustworkx.max_weight_matching(graph, max_cardinality=True, weight_fn=int))
    byes = [i for i, j in matched if j == field.size]
    return [[i, j] for i, j in matched if j < field.size], byes
