"""How many servers should be on? Plans of the cloud model over a range of loads.

The stationary distribution of 34 000 states and more, one for each load, by elimination without subtractions. The script checks that what
arrives and is not lost is what leaves, and that a plan follows its load.

    python how_many_servers.py [picture.svg]
"""

from __future__ import annotations

import numpy as np
from support import picture

import blocktri as bt

RESOURCES, THRESHOLD = 64, 16


def main() -> None:
    loads = np.linspace(2, 50, 13)
    plans = [bt.CloudQueue(RESOURCES, THRESHOLD, float(load)).plan(resource_hour=1.0, waiting_task_hour=0.5) for load in loads]
    print(f"{plans[0].states} states a plan")
    for load, plan in zip(loads, plans):
        print(f"load {load:4.0f}: {plan.in_advance:3d} in advance, {plan.resources['mean']:5.1f} on in the mean, loss 10^{plan.log10_loss:.0f}")
    on = np.array([plan.resources["mean"] for plan in plans])
    assert all(abs(plan.throughput / (load * (1 - plan.loss)) - 1) < 1e-9 for load, plan in zip(loads, plans))
    assert np.all(np.diff(on) > 0) and all(p.in_advance <= q.in_advance for p, q in zip(plans, plans[1:]))
    most = np.array([float(plan.resources["quantile_0.99"]) for plan in plans])
    picture("Servers that are on", "tasks that arrive per service time", "servers", {"mean": (loads, on), "99 %": (loads, most)})


if __name__ == "__main__":
    main()
