#!/usr/bin/env python3
"""The queue under N DCQCN flows as a stochastic process: an outside check of the simulator.

No packets, no switch, no transport: rates are numbers, the queue is their integral, each flow's marks are Bernoulli trials
at the queue's RED probability, and the notification and reaction points are those of Zhu et al. (SIGCOMM 2015), one event
at a time. It shares no code with the simulator. `behaviours.rs` holds the simulator against what it prints:

    python3 dcqcn_queue.py

It also shows why the fluid model's fixed point is not reached: cuts are rare and large (at N = 2 a flow is cut every
0.5 ms by 5 %), so the queue swings by as much as its mean, and a receiver that sends a CNP and then forgets marks for
50 us sends fewer than the fluid's (1 - (1-p)^(50 us R)) / 50 us.
"""
import math
import random


def run(flows, seed, feedback=4e-6, time=0.2, warm=0.04):
    line, packet = 40e9, 8 * 1086.0
    notify, alpha_timer, increase_timer = 50e-6, 55e-6, 55e-6
    gain, stages, additive, byte_counter = 1 / 256, 5, 40e6, 8 * 10e6
    kmin, kmax, pmax = 5e3, 200e3, 0.01
    chance, step = random.Random(seed), 2e-6
    rate, target, alpha = [line] * flows, [line] * flows, [1.0] * flows
    alpha_at, increase_at = [alpha_timer] * flows, [increase_timer] * flows
    sent, by_time, by_bytes = [0.0] * flows, [0] * flows, [0] * flows
    quiet_until, under_way = [-1.0] * flows, [[] for _ in range(flows)]
    queue = now = total = squares = 0.0
    samples = 0
    while now < time:
        queue = max(0.0, queue + (sum(rate) - line) * step / 8)
        slope = (queue - kmin) / (kmax - kmin) * pmax
        p = 0.0 if queue < kmin else slope if queue < kmax else 1.0
        for i in range(flows):
            marked = p > 0 and chance.random() < 1 - (1 - p) ** (rate[i] * step / packet)
            if marked and now >= quiet_until[i]:
                quiet_until[i] = now + notify
                under_way[i].append(now + feedback)
            sent[i] += rate[i] * step
            if under_way[i] and under_way[i][0] <= now:
                under_way[i].pop(0)
                target[i], rate[i] = rate[i], rate[i] * (1 - alpha[i] / 2)
                alpha[i] += gain * (1 - alpha[i])
                alpha_at[i], increase_at[i] = now + alpha_timer, now + increase_timer
                sent[i], by_time[i], by_bytes[i] = 0.0, 0, 0
                continue
            if now >= alpha_at[i]:
                alpha[i] *= 1 - gain
                alpha_at[i] += alpha_timer
            increases = False
            if now >= increase_at[i]:
                by_time[i], increases = by_time[i] + 1, True
                increase_at[i] += increase_timer
            if sent[i] >= byte_counter:
                by_bytes[i], sent[i], increases = by_bytes[i] + 1, 0.0, True
            if increases:
                if max(by_time[i], by_bytes[i]) >= stages:
                    target[i] = min(line, target[i] + additive)
                rate[i] = min(line, (rate[i] + target[i]) / 2)
        now += step
        if now > warm:
            total, squares, samples = total + queue, squares + queue * queue, samples + 1
    mean = total / samples
    return mean, math.sqrt(squares / samples - mean * mean)


if __name__ == "__main__":
    for flows, feedback in ((2, 4e-6), (4, 4e-6), (8, 4e-6), (10, 4e-6), (16, 4e-6), (10, 85e-6)):
        runs = [run(flows, seed, feedback) for seed in range(1, 17)]
        mean = sum(run[0] for run in runs) / len(runs) / 1e3
        deviation = sum(run[1] for run in runs) / len(runs) / 1e3
        print(f"N = {flows:2}, feedback {feedback * 1e6:.0f} us: {mean:.1f} KB, deviation {deviation:.1f} KB", flush=True)
