#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/samplers.safetensors: whole trajectories from noise to a latent.

The network is a formula, so that only the samplers are compared:

    F(v, c_noise; b) = sin(1.3 v + b) + 0.1 c_noise,  v the scaled input, b[i] a number of element i

once with b (the prompt) and once with -b / 2 (the negative prompt), guided as c + g (c - u).

  edm.zero, edm.sigma_min   diffusers' EDMEulerScheduler with these final_sigmas_type, as
                            CosmosTextToWorldPipeline calls it: 8 steps, sigma 80 to 0.002, g 2
  flow.1, flow.3            FlowMatchEulerDiscreteScheduler with shift 1 and 3, 8 steps, no guidance;
                            v is the state itself, c_noise the timestep / 1000
  res                       the RES two-step method from its definition, in float64: the estimate as
                            the line through the last two in lambda = -ln sigma, integrated with
                            e^-(lambda' - lambda) by Gauss-Legendre quadrature. 8 steps and the
                            estimate at sigma_min, g 2

NAME.sigmas holds the levels, NAME.x the states (levels, elements); "start" is noise of unit variance.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 diffusers==0.42.1 safetensors==0.8.0
    venv/bin/python scripts/golden/samplers.py
"""
import pathlib

import diffusers
import numpy as np
import torch
from diffusers import EDMEulerScheduler, FlowMatchEulerDiscreteScheduler
from safetensors.torch import save_file

STEPS, GUIDANCE, DATA = 8, 2.0, 0.5


def network(v, c_noise, bias):
    return (torch if torch.is_tensor(v) else np).sin(1.3 * v + bias) + 0.1 * c_noise


def edm(final: str, start, bias):
    scheduler = EDMEulerScheduler(final_sigmas_type=final)
    scheduler.set_timesteps(STEPS)
    x = start * scheduler.config.sigma_max
    states = [x]
    for t in scheduler.timesteps:
        v = scheduler.scale_model_input(x, t)
        estimates = []
        for b in (bias, -bias / 2):
            estimates.append(scheduler.step(network(v, t, b), t, x, return_dict=False)[1])
            scheduler._step_index -= 1
        x0 = estimates[0] + GUIDANCE * (estimates[0] - estimates[1])
        x = scheduler.step(x0, t, x, return_dict=False, pred_original_sample=x0)[0]
        states.append(x)
    return scheduler.sigmas, torch.stack(states)


def flow(shift: float, start, bias):
    scheduler = FlowMatchEulerDiscreteScheduler(shift=shift)
    scheduler.set_timesteps(STEPS)
    x, states = start, [start]
    for t in scheduler.timesteps:
        x = scheduler.step(network(x, t / 1000, bias), t, x, return_dict=False)[0]
        states.append(x)
    return scheduler.sigmas, torch.stack(states)


def res(start, bias):
    ramp = np.arange(STEPS + 1) / STEPS
    sigmas = (80 ** (1 / 7) + ramp * (0.002 ** (1 / 7) - 80 ** (1 / 7))) ** 7

    def estimate(x, s):
        v, variance = x / np.sqrt(s * s + DATA * DATA), s * s + DATA * DATA
        c, u = (DATA * DATA / variance * x + s * DATA / np.sqrt(variance) * network(v, np.log(s) / 4, b)
                for b in (bias, -bias / 2))
        return c + GUIDANCE * (c - u)

    nodes, weights = np.polynomial.legendre.leggauss(40)
    x, before, states = start * sigmas[0], None, [start * sigmas[0]]
    for i in range(STEPS):
        here, there = -np.log(sigmas[i]), -np.log(sigmas[i + 1])
        x0 = estimate(x, sigmas[i])
        if before is None:
            x = x0 + sigmas[i + 1] / sigmas[i] * (x - x0)
        else:
            at = here + (nodes + 1) / 2 * (there - here)
            slope = (x0 - before[1]) / (here - before[0])
            line = x0 + (at[:, None] - here) * slope
            inner = (np.exp(at - there) * weights)[:, None] * line
            x = np.exp(here - there) * x + (there - here) / 2 * inner.sum(0)
        before = (here, x0)
        states.append(x)
    states.append(estimate(x, sigmas[-1]))
    return np.append(sigmas, 0), np.stack(states)


def main() -> None:
    torch.manual_seed(11)
    start, bias = torch.randn(6), torch.linspace(-1, 1.5, 6)
    tensors = {"start": start, "bias": bias}
    for name, (sigmas, states) in {
            "edm.zero": edm("zero", start, bias), "edm.sigma_min": edm("sigma_min", start, bias),
            "flow.1": flow(1.0, start, bias), "flow.3": flow(3.0, start, bias)}.items():
        tensors[name + ".sigmas"], tensors[name + ".x"] = sigmas.float(), states.float()
    sigmas, states = res(start.double().numpy(), bias.double().numpy())
    tensors["res.sigmas"], tensors["res.x"] = torch.from_numpy(sigmas), torch.from_numpy(states)
    path = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/samplers.safetensors"
    save_file({k: v.contiguous() for k, v in tensors.items()}, path,
              metadata={"torch": torch.__version__, "diffusers": diffusers.__version__})
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
