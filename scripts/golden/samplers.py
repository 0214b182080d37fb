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
  unipc1, unipc2, unipc3    UniPCMultistepScheduler with flow sigmas of shift 3 and this order, 8 steps;
                            c_noise the timestep / 1000, a whole number / 1000
  unipc3.short              the same with order 3 and 3 steps
  dpm                       DPMSolverMultistepScheduler likewise
  unipc2.reference, dpm.reference
                            the schedulers of Wan's own program, as its text2video.py calls them
  edm.unipc2, edm.dpm       both methods over the levels of res, from their definitions, in float64
  res                       the RES two-step method from its definition, in float64: the estimate as
                            the line through the last two in lambda = -ln sigma, integrated with
                            e^-(lambda' - lambda) by Gauss-Legendre quadrature. 8 steps and the
                            estimate at sigma_min, g 2

NAME.sigmas holds the levels, NAME.x the states (levels, elements); "start" is noise of unit variance.
times.NAME holds the timesteps of these schedulers for 3, 4, 9, 27 and 50 steps with shifts 1, 3, 5, 8
and 12, one list after the other.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 diffusers==0.42.1 safetensors==0.8.0
    git clone https://github.com/Wan-Video/Wan2.2 && git -C Wan2.2 checkout 42bf4cf
    venv/bin/python scripts/golden/samplers.py Wan2.2
"""
import importlib.util
import pathlib
import sys

import diffusers
import numpy as np
import torch
from diffusers import (DPMSolverMultistepScheduler, EDMEulerScheduler, FlowMatchEulerDiscreteScheduler,
                       UniPCMultistepScheduler)
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


def euler(shift: float, steps: int):
    scheduler = FlowMatchEulerDiscreteScheduler(shift=shift)
    scheduler.set_timesteps(steps)
    return scheduler


def unipc(order: int, shift: float, steps: int):
    scheduler = UniPCMultistepScheduler(solver_order=order, prediction_type="flow_prediction", use_flow_sigmas=True,
                                        flow_shift=shift)
    scheduler.set_timesteps(steps)
    return scheduler


def dpm(shift: float, steps: int):
    scheduler = DPMSolverMultistepScheduler(prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=shift)
    scheduler.set_timesteps(steps)
    return scheduler


def of_wan(name: str):
    path = pathlib.Path(sys.argv[1]) / "wan/utils" / name
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wan_unipc(shift: float, steps: int):
    scheduler = of_wan("fm_solvers_unipc.py").FlowUniPCMultistepScheduler(
        num_train_timesteps=1000, shift=1, use_dynamic_shifting=False)
    scheduler.set_timesteps(steps, device="cpu", shift=shift)
    return scheduler


def wan_dpm(shift: float, steps: int):
    solvers = of_wan("fm_solvers.py")
    scheduler = solvers.FlowDPMSolverMultistepScheduler(num_train_timesteps=1000, shift=1, use_dynamic_shifting=False)
    solvers.retrieve_timesteps(scheduler, device="cpu", sigmas=solvers.get_sampling_sigmas(steps, shift))
    return scheduler


def flow(scheduler, start, bias):
    # The multistep schedulers are for batches, and find a step by its timestep unless told where to begin.
    scheduler.set_begin_index(0)
    start = start[None]
    x, states = start, [start]
    for t in scheduler.timesteps:
        x = scheduler.step(network(x, t / 1000, bias), t, x, return_dict=False)[0]
        states.append(x)
    return scheduler.sigmas, torch.cat(states)


def karras():
    ramp = np.arange(STEPS + 1) / STEPS
    return (80 ** (1 / 7) + ramp * (0.002 ** (1 / 7) - 80 ** (1 / 7))) ** 7


def estimate(x, s, bias):
    v, variance = x / np.sqrt(s * s + DATA * DATA), s * s + DATA * DATA
    c, u = (DATA * DATA / variance * x + s * DATA / np.sqrt(variance) * network(v, np.log(s) / 4, b)
            for b in (bias, -bias / 2))
    return c + GUIDANCE * (c - u)


def weights_of(nodes, h):
    """The rho of UniPC's paper, equation 12, with B(h) = e^-h - 1."""
    if len(nodes) == 1:
        return np.array([0.5])
    phi, b, factorial = [np.expm1(-h) / -h - 1], [], 1
    for i in range(1, len(nodes) + 1):
        b.append(phi[-1] * factorial / np.expm1(-h))
        factorial *= i + 1
        phi.append(phi[-1] / -h - 1 / factorial)
    return np.linalg.solve(np.vander(np.array(nodes), increasing=True).T, np.array(b))


def multistep(corrects: bool, start, bias):
    """UniPC of order 2, or its predictor alone, which is DPM-Solver++ (2M). lambda is -ln sigma."""
    sigmas = karras()
    n, lam = len(sigmas), -np.log(sigmas)

    def move(x, i, j, nodes, values, m0):
        h = lam[j] - lam[i]
        rest = sum((rho * (m - m0) / r for rho, r, m in zip(weights_of(nodes, h), nodes, values)), 0 * m0) if nodes else 0
        return sigmas[j] / sigmas[i] * x - np.expm1(-h) * (m0 + rest)

    x, before, m, states = start * sigmas[0], None, [], [start * sigmas[0]]
    for i in range(n):
        m.append(estimate(x, sigmas[i], bias))
        if i + 1 == n:
            break
        if corrects and i > 0:
            nodes, values = [1.0], [m[i]]
            if i > 1:
                nodes = [(lam[i - 2] - lam[i - 1]) / (lam[i] - lam[i - 1])] + nodes
                values = [m[i - 2]] + values
            x = move(before, i - 1, i, nodes, values, m[i - 1])
        before = x
        nodes = [(lam[i - 1] - lam[i]) / (lam[i + 1] - lam[i])] if i > 0 else []
        x = move(x, i, i + 1, nodes, [m[i - 1]] if i > 0 else [], m[i])
        states.append(x)
    states.append(m[-1])
    return np.append(sigmas, 0), np.stack(states)


def res(start, bias):
    sigmas = karras()
    nodes, weights = np.polynomial.legendre.leggauss(40)
    x, before, states = start * sigmas[0], None, [start * sigmas[0]]
    for i in range(STEPS):
        here, there = -np.log(sigmas[i]), -np.log(sigmas[i + 1])
        x0 = estimate(x, sigmas[i], bias)
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
    states.append(estimate(x, sigmas[-1], bias))
    return np.append(sigmas, 0), np.stack(states)


def main() -> None:
    torch.manual_seed(11)
    start, bias = torch.randn(6), torch.linspace(-1, 1.5, 6)
    tensors = {"start": start, "bias": bias}
    for name, (sigmas, states) in {
            "edm.zero": edm("zero", start, bias), "edm.sigma_min": edm("sigma_min", start, bias),
            **{name: flow(scheduler, start, bias) for name, scheduler in {
                "flow.1": euler(1.0, STEPS), "flow.3": euler(3.0, STEPS),
                "unipc1": unipc(1, 3.0, STEPS), "unipc2": unipc(2, 3.0, STEPS), "unipc3": unipc(3, 3.0, STEPS),
                "unipc3.short": unipc(3, 3.0, 3), "dpm": dpm(3.0, STEPS),
                "unipc2.reference": wan_unipc(5.0, STEPS), "dpm.reference": wan_dpm(5.0, STEPS)}.items()}}.items():
        tensors[name + ".sigmas"], tensors[name + ".x"] = sigmas.float(), states.float()
    exact = start.double().numpy(), bias.double().numpy()
    for name, (sigmas, states) in {"res": res(*exact), "edm.unipc2": multistep(True, *exact),
                                   "edm.dpm": multistep(False, *exact)}.items():
        tensors[name + ".sigmas"], tensors[name + ".x"] = torch.from_numpy(sigmas), torch.from_numpy(states)
    for name, make in {"unipc": lambda *a: unipc(2, *a), "dpm": dpm, "unipc.reference": wan_unipc,
                       "dpm.reference": wan_dpm}.items():
        tensors["times." + name] = torch.cat(
            [make(float(shift), steps).timesteps for shift in (1, 3, 5, 8, 12) for steps in (3, 4, 9, 27, 50)]).float()
    path = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/samplers.safetensors"
    save_file({k: v.contiguous() for k, v in tensors.items()}, path,
              metadata={"torch": torch.__version__, "diffusers": diffusers.__version__})
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
