"""Writes optima.json: the fastest mixing chains of random graphs, by Clarabel.

usage: python3 -m venv cv && cv/bin/pip install clarabel scipy && cv/bin/python objectives/tests/slem/optima.py
"""

import json
import os
import random

import clarabel
import numpy
from scipy import sparse


def graph(n, density, rng):
    """Edges of a connected graph: a random tree, and each other edge with this probability."""
    parents = [rng.randrange(node) for node in range(1, n)]
    return [(i, j) for j in range(1, n) for i in range(j) if parents[j - 1] == i or rng.random() < density]


def optimum(n, edges):
    """Smallest s with -s*I <= I - sum p_l b_l b_l' - 11'/n <= s*I, p >= 0 and 1 - sum of p_l at i >= 0.

    Variables p, then s; rows A*x + slack = b, with the slack in a cone: the upper triangles of both matrices by columns, times sqrt(2)
    off the diagonal, then what may not be negative.
    """
    m, rows, b = len(edges), [], []
    for sign in (1, -1):
        for j in range(n):
            for i in range(j + 1):
                row, scale = numpy.zeros(m + 1), 1 if i == j else 2**0.5
                if i == j:
                    row[m] = -1
                for l, (g, h) in enumerate(edges):
                    if i == j and i in (g, h):
                        row[l] = -sign
                    elif (i, j) == (g, h):
                        row[l] = sign * scale
                rows.append(row)
                b.append(-sign * scale * ((i == j) - 1 / n))
    for l in range(m):
        rows.append(-numpy.eye(m + 1)[l])
        b.append(0)
    for i in range(n):
        rows.append(numpy.array([float(i in edge) for edge in edges] + [0]))
        b.append(1)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.PSDTriangleConeT(n), clarabel.PSDTriangleConeT(n), clarabel.NonnegativeConeT(m + n)]
    cost = numpy.eye(m + 1)[m]
    none = sparse.csc_matrix((m + 1, m + 1))
    found = clarabel.DefaultSolver(none, cost, sparse.csc_matrix(numpy.array(rows)), numpy.array(b), cones, settings).solve()
    assert found.status == clarabel.SolverStatus.Solved, found.status
    return found.obj_val


def main():
    rng = random.Random(7)
    graphs = []
    for n in range(5, 13):
        for density in (0.0, 0.2, 0.5, 0.8):
            edges = graph(n, density, rng)
            graphs.append({"nodes": n, "edges": edges, "optimum": round(optimum(n, edges), 9)})
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "optima.json")
    with open(path, "w") as file:
        file.write('{"solver": "Clarabel %s", "graphs": [\n' % clarabel.__version__)
        file.write(",\n".join(json.dumps(found, separators=(",", ":")) for found in graphs) + "\n]}\n")


main()
