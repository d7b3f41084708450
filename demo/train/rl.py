# Copyright (C) The nginx-dsa authors

"""Reinforcement learning of the policy that the running server serves: rollouts
of tasks, updates by GRPO, and the new weights replaced in place.

    PYTHONPATH=demo python3 -m train.rl --model DIR --out DIR --build build \\
        (--families arithmetic,tools_multi | --domain logic)
        [--mode retain|chat|both] [--backend cuda] [--updates N]
        [--seconds N] [--off keep_mask,...] [--eval N]

--model is a checkpoint of train.train, or a model's directory with its
tokenizer.json, which --tokenizer names otherwise.  --domain has the families of
a specialist (domains.py), or of several, and --mode both lets them think in
half of their tasks.  --out gets log.jsonl with a line for each batch of
rollouts, the weights that the server loads, and at the end policy.bf16.  --off
turns stabilizers off, for comparisons.  --eval measures so many held-out tasks
of each family before and after.  --pick N first has 8 tasks of each family, and
trains the N families with the most groups that have right and wrong answers:
the others have nothing to learn from.

After every --part batches, at the end of a stage, and when --seconds are over,
--out gets part-BATCH.bf16 and a line {"saved"}.  The next part starts from them
with a new optimizer, in the same call or in another one: it has the tasks, the
noise and the reference that it would have had in the same call.  The exit
status is 75 after --seconds, and the same command continues.

    ... --plan demo/train/mixed.json --order mixed --judge judge.json

takes the place of --families, --domain, --updates, --beta, --beta-of and
--length-penalty: see plan.py.  Each stage begins with a new optimizer, and its
reference is the policy at its beginning.  --judge is a file of
train.agreement, which the families with rubrics need.  --eval measures all
families after each stage, train.forgetting prints what they lost, and
answers-N.jsonl has the answers to tasks without tools of the N-th
measurement, from 0.

A line of log.jsonl:

    batch, version          number; version of the weights of its rollouts
    stage                   domains of the plan's stage
    reward, families        the verifiers' mean, and by family
    total, length_penalty, language
                            means of the rewards and of two of their parts
    judged, no_verdict      answers that a judge had to score; those without a
                            verdict by reason.  They are left out
    domains                 by domain: mean reward, sampled tokens, and, before
                            the updates, kl and entropy, each the mean over the
                            tokens of a trajectory
    mixed                   share of groups with right and wrong answers
    tokens, longest         sampled tokens of a trajectory: mean, most
    positions               of all sequences that are trained on, without
                            padding
    cut                     share of trajectories with a message at max_tokens
    requests, differs       of these, those that did not begin with the ids that
                            were sampled before
    dropped                 trajectories of several versions, which are left out
    tokens_per_second       sampled, of all conversations together
    apart_mean, apart_most, apart_signed
                            the trainer's log-probabilities against the
                            engine's, before the update
    kl, entropy, ratio, clipped, masked, loss, index_loss, gradient,
    index_gradient          of the updates, see grpo.Loss; means, and the
                            largest ratio
    rollout_seconds, reward_seconds, update_seconds, export_seconds,
    reload_seconds

and {"saved", "stage", "weights", "task", "noise"}: the number of the last batch
and its stage, the digest of the first weights, the numbers of the next task and
of its noise.
"""

import argparse
import copy
import json
import math
import os
import random
import sys
import time
import uuid

import torch

from eval.client import RunFailed
from tasks.task import RETAIN
from train import (agreement, checkpoint, domains, grpo, lines, plan, restore,
                   rewards)
from train.attention import rows_backward, rows_forward
from train.clients import Clients
from train.export import export
from train.learn import Learner, split
from train.model import Model
from train.ops import accelerate
from train.rewards import mean
from train.rollout import Sampling
from train.rubric import rubric_of
from train.served import LEFT, digest, ends_on_signal
from train.server import Server
from worlds.form import Refused
from worlds.registry import task_of


SWITCHES = ('unbiased_kl', 'sequence_mask', 'keep_routing', 'keep_mask')
TRIES = 1000                    # tasks of a family until one has the mode
DIRECTORIES = 3                 # of weights, used in turn
NOISE = 100_000_000             # seeds of the noise of a run
HELD_OUT = NOISE // 2           # of them, for held-out tasks from here on


def arguments(args=None):
    p = argparse.ArgumentParser(prog='train.rl', description=__doc__,
                                formatter_class=argparse
                                .RawDescriptionHelpFormatter)

    p.add_argument('--model', required=True)
    p.add_argument('--tokenizer')
    p.add_argument('--out', required=True)
    p.add_argument('--build', default='build')
    p.add_argument('--nginx')
    p.add_argument('--backend', default='cpu')
    p.add_argument('--memory', default='1g')
    p.add_argument('--running', type=int, default=64)
    p.add_argument('--families', type=lambda s: s.split(','))
    p.add_argument('--domain', type=lambda s: s.split(','))
    p.add_argument('--plan')
    p.add_argument('--order')
    p.add_argument('--judge')
    p.add_argument('--mode', choices=domains.MODES, default=RETAIN)
    p.add_argument('--updates', type=int, default=100,
                   help='batches of rollouts, of all calls')
    p.add_argument('--part', type=int, default=50,
                   help='batches between checkpoints')
    p.add_argument('--seconds', type=float, default=math.inf)
    p.add_argument('--tasks', type=int, default=16, help='of a batch')
    p.add_argument('--group', type=int, default=8)
    p.add_argument('--minibatches', type=int, default=4)
    p.add_argument('--concurrency', type=int, default=128)
    p.add_argument('--rate', type=float, default=2e-5)
    p.add_argument('--temperature', type=float, default=1.0)
    p.add_argument('--top-p', type=float, default=0.95)
    p.add_argument('--max-tokens', type=int, default=512)
    p.add_argument('--length-penalty', type=float, default=0.0,
                   help='of the reward, for max_tokens sampled tokens or '
                        'more')
    p.add_argument('--clip', type=float, default=0.2)
    p.add_argument('--beta', type=float, default=0.01)
    p.add_argument('--beta-of', default='',
                   help='FAMILY=BETA,...: other strengths of the KL term')
    p.add_argument('--delta', type=float, default=0.1)
    p.add_argument('--precision', choices=('served', 'float'),
                   default='served', help='of the trainer (grpo.Settings)')
    p.add_argument('--off', default='',
                   help=', '.join(SWITCHES + rewards.SWITCHES))
    p.add_argument('--eval', type=int, default=0)
    p.add_argument('--pick', type=int, default=0)
    p.add_argument('--seed', type=int, default=1)

    options = p.parse_args(args)
    options.off = [x for x in options.off.split(',') if x]

    for name in options.off:
        if name not in SWITCHES + rewards.SWITCHES:
            p.error(f'--off {name}: expected '
                    + ', '.join(SWITCHES + rewards.SWITCHES))

    try:
        options.beta_of = {k: float(v) for k, v in (
            x.split('=') for x in options.beta_of.split(',') if x)}
    except ValueError:
        p.error('--beta-of: expected FAMILY=BETA,...')

    if sum(x is not None for x in (options.families, options.domain,
                                   options.plan)) != 1:
        p.error('expected either --families, --domain or --plan')

    if options.plan and (options.pick or options.seconds < math.inf):
        p.error('--plan: neither --pick nor --seconds, because orders must '
                'have the same number of batches')

    try:
        if options.domain:
            options.families = domains.families_of(options.domain)

        options.plan = planned(options)
        options.families = list(options.plan.names)

        for family in options.families:
            domains.check(family)

        options.judge = judge_of(options)
    except (Refused, plan.BadPlan) as e:
        p.error(str(e))

    if options.part < 1:
        p.error('--part: expected a number above 0')

    if options.minibatches < 4:
        p.error('--minibatches: expected at least 4; otherwise nothing is '
                'off-policy')

    if options.temperature <= 0:
        p.error('--temperature: expected a number above 0')

    return options


def planned(options):
    """Returns the Plan of the options: without a file, one stage in which each
    family is a domain of its own."""

    if options.plan is not None:
        return plan.load(options.plan, options.order)

    domains = {f: plan.Domain({f: 1}, options.beta_of.get(f, options.beta),
                              options.length_penalty, options.max_tokens)
               for f in options.families}

    return plan.Plan(domains, [plan.Stage(tuple(domains), options.updates)])


def judge_of(options):
    """Returns the judge, or None if no family has rubrics.  Raises Refused if
    one has, and no judge was measured to agree on it."""

    families = [f for f in options.families if options.plan.of(f).rubric]

    if not families or 'rubric' in options.off:
        return None

    for f in families:
        rubric_of(f, 'rl-1')

    if options.judge is None:
        raise Refused('--judge is missing; these families have rubrics: '
                      + ', '.join(families))

    return agreement.accepted(options.judge, families)


class Tasks:
    """Draws tasks of families by their weights, with seeds that neither
    supervised training nor evaluation uses."""

    def __init__(self, options, weights):
        self.options, self.number = options, 0
        self.mixture = plan.Mixture(weights)

    def draw(self, n, prefix='rl'):
        """Returns n triples (family, seed of a task, mode).  Raises RunFailed
        if a family has no task in a mode."""

        return [self.one(self.mixture.draw(), prefix) for _ in range(n)]

    def one(self, family, prefix):
        """A family has its modes in turn, except for tasks without them."""

        modes = domains.MODES.get(self.options.mode, ())
        turn = (self.mixture.counts[family] - 1) % max(1, len(modes))

        for _ in range(TRIES):
            name = f'{prefix}-{self.options.seed}-{self.number}'
            self.number += 1
            known = task_of(family, name).modes

            for mode in modes[turn:] + modes[:turn]:
                if mode in known:
                    return family, name, mode

        raise RunFailed(f'{family} has no task in the mode '
                        + self.options.mode)


def described(groups, seconds):
    """Returns the figures of rollouts."""

    each = [t for g in groups for t in g]
    families = {t.family for t in each}

    return {
        'reward': mean(t.reward for t in each),
        'families': {f: round(mean(t.reward for t in each if t.family == f), 4)
                     for f in sorted(families)},
        'mixed': mean(len({t.reward for t in g}) > 1 for g in groups),
        'tokens': mean(t.tokens for t in each),
        'longest': max(t.tokens for t in each),
        'cut': mean(t.cut for t in each),
        'requests': sum(t.requests for t in each),
        'differs': sum(t.differs for t in each),
        'rollout_seconds': seconds,
        'tokens_per_second': sum(t.tokens for t in each) / seconds}


class Run:
    def __init__(self, options):
        self.options = options
        self.device = torch.device('cuda' if torch.cuda.is_available()
                                   else 'cpu')

        # the regions that round as serving does take more than 100 s to
        # compile (README.md), those of attention do not round

        if self.device.type == 'cuda':
            accelerate(None if options.precision == 'float'
                       else (rows_forward, rows_backward))

        saved = restore.start(options.model, wide=True)
        self.weights = digest(options.model)
        self.config = saved['config']
        self.tokenizer = options.tokenizer or os.path.join(options.model,
                                                           'tokenizer.json')
        self.policy = Model(self.config)
        self.policy.load_state_dict(saved['model'])
        self.policy.to(self.device)

        self.settings = grpo.Settings(
            clip=options.clip, delta=options.delta,
            precision=options.precision,
            beta_of={f: options.plan.of(f).beta for f in options.families},
            **{name: False for name in options.off if name in SWITCHES})

        with open(self.tokenizer) as f:
            t = json.load(f)

        self.ids = 1 + max([*t['model']['vocab'].values(),
                            *(x['id'] for x in t['added_tokens'])])
        self.allowed = min(self.ids, self.config['vocab_size'])
        self.tasks = Tasks(options, {})
        self.clients = Clients()
        self.noise, self.exports, self.evals = 0, 0, 0
        self.measured = None    # batches before the last measurement
        self.done, self.first = 0, 0
        self.begin(options.plan.stages[0])

    def begin(self, stage):
        """Begins a stage of the plan after the last batch.  Tasks go on, so
        that no stage has those of another."""

        self.first = self.done
        ref = copy.deepcopy(self.policy).requires_grad_(False)
        self.learner = Learner(self.policy, ref, self.settings,
                               self.options.temperature, self.options.rate,
                               self.ids, self.device)
        self.tasks.mixture = plan.Mixture(self.options.plan.weights(stage))
        self.stage = stage.name

    def export(self):
        """Writes the weights into the next directory.  The engine may have
        the files of the last one open."""

        path = os.path.join(self.options.out,
                            f'weights-{self.exports % DIRECTORIES}')
        self.exports += 1
        export(self.config, self.policy.state_dict(), path, self.tokenizer)

        return path

    def rollouts(self, server, tasks, group, noise=None):
        """Returns groups in the order of tasks, and the seconds.  noise: the
        number of the first seed; by default those that are due."""

        o = self.options
        groups, seconds = [None] * len(tasks), 0

        if noise is None:
            noise, self.noise = self.noise, self.noise + len(tasks) * group

        for mode in domains.MODES[o.mode]:
            mine = [i for i, task in enumerate(tasks) if task[2] == mode]
            sampling = Sampling(server.url, server.model, mode, self.allowed,
                                o.temperature, o.top_p, o.max_tokens)
            found, took = self.clients.rollouts(
                [tasks[i][:2] for i in mine], task_of, sampling, group,
                o.seed * NOISE + noise, o.concurrency, uuid.uuid4().hex)
            noise += len(mine) * group
            seconds += took

            for i, g in zip(mine, found):
                groups[i] = g

        return groups, seconds

    def evaluate(self, server, when):
        """Measures held-out tasks: the same at each call."""

        if not self.options.eval:
            return None

        families = self.options.families
        tasks = Tasks(self.options, dict.fromkeys(families, 1)).draw(
            self.options.eval * len(families), 'eval')
        groups, seconds = self.rollouts(server, tasks, 1, HELD_OUT)
        each = [t for g in groups for t in g]
        found = described(groups, seconds)
        self.keep(each)
        write(self.log, {'eval': when, 'batches': self.done,
                         'stage': self.stage, **{
            k: found[k] for k in (
                'reward', 'families', 'tokens', 'cut', 'tokens_per_second',
                'rollout_seconds')}, 'right': {
                f: [int(sum(t.reward for t in each if t.family == f)),
                    self.options.eval] for f in families}})
        self.measured = self.done

        return [(t.family, t.reward) for t in each]

    def keep(self, trajectories):
        """Writes the answers to tasks without tools, for
        train.agreement."""

        path = os.path.join(self.options.out, f'answers-{self.evals}.jsonl')
        self.evals += 1

        with open(path, 'w') as f:
            for t in trajectories:
                if not task_of(t.family, t.seed).tools:
                    f.write(json.dumps({
                        'family': t.family, 'seed': t.seed, 'cut': t.cut,
                        'written': t.written}) + '\n')

    def batch(self, server, number):
        """Makes the rollouts of a batch, and the updates by it."""

        o = self.options
        groups, seconds = self.rollouts(server, self.tasks.draw(o.tasks),
                                        o.group)
        line = {'batch': number, 'stage': self.stage,
                'version': server.version, **described(groups, seconds)}
        begin = time.monotonic()
        settled = rewards.settle(groups, o.plan, task_of, o.mode, o.judge,
                                 o.off, o.concurrency)
        line.update(rewards.figures(o.plan, groups, settled))
        line['reward_seconds'] = time.monotonic() - begin
        begin = time.monotonic()
        each = self.advantages(groups, settled)

        # an answer that two versions sampled belongs to neither

        whole = [x for x in each if x[0].versions == {server.version}
                 and x[0].tokens]
        line['dropped'] = len(each) - len(whole)
        line['positions'] = sum(len(s.ids) for t, _ in whole
                                for s in t.sequences)

        if 2 * sum(line['no_verdict'].values()) > line['judged'] > 0 \
                or not whole:
            write(self.log, line)
            raise RunFailed(f'batch {number}: {len(whole)} trajectories are '
                            f'left; {line["dropped"]} have several versions, '
                            f'{line["no_verdict"]} of {line["judged"]} no '
                            'verdict')

        random.Random(f'{o.seed}/{number}').shuffle(whole)

        # the reference and the agreement are computed before any update

        minis = [self.learner.prepared([t for t, _ in part],
                                       [a for _, a in part])
                 for part in split(whole, o.minibatches) if part]
        line.update(self.learner.agreement([x for m in minis for x in m]))

        for name, values in line['domains'].items():
            some = [t for t, _ in whole if o.plan.names[t.family] == name]
            if some:
                values['kl'] = mean(t.kl for t in some)
                values['entropy'] = mean(t.entropy for t in some)

        steps = [self.learner.step(m) for m in minis]

        for name in steps[0]:
            values = [s[name] for s in steps]
            line[name] = max(values) if name == 'ratio' else mean(values)

        line['update_seconds'] = time.monotonic() - begin
        begin = time.monotonic()
        path = self.export()
        line['export_seconds'] = time.monotonic() - begin
        line['reload_seconds'] = server.replace(path)
        write(self.log, line)

        if not all(math.isfinite(line[k]) for k in ('loss', 'gradient')):
            sys.exit(f'batch {number}: the loss is not finite')

    def advantages(self, groups, settled):
        """Returns [(Trajectory, its advantage)] of all that have a reward."""

        found = []

        for group, row in zip(groups, settled):
            some = [(t, r.total) for t, r in zip(group, row)
                    if r.total is not None]
            if some:
                found += zip([t for t, _ in some],
                             grpo.advantages([r for _, r in some]))

        return found

    def run(self):
        """Returns how many batches are left."""

        o = self.options
        begin, over = time.monotonic(), False

        # before the server has a port, so that the judge cannot be the policy

        if o.judge is not None:
            o.judge.check()

        picked = self.resume()
        server = Server(o.build, self.export(), o.backend, o.memory,
                        o.running, nginx=o.nginx)

        with open(self.path('log.jsonl'), 'a') as self.log:
            try:
                server.start()

                if o.pick and not picked:
                    self.pick(server)

                before = after = None if self.done \
                    else self.evaluate(server, 'before')

                for stage, end in self.stages():
                    # a call may have ended between the checkpoint of a stage
                    # and its measurement

                    if over or self.done > end or self.done == end \
                            and (not o.eval or self.measured == end):
                        continue

                    if self.done and self.done == end - stage.batches:
                        self.begin(stage)

                    while self.done < end and not over:
                        self.batch(server, self.done + 1)
                        self.done += 1
                        over = time.monotonic() - begin >= o.seconds

                        if over or self.done == end \
                                or self.done % o.part == 0:
                            self.save(server, end)

                    after = self.evaluate(server, 'after')

                if self.done:
                    self.compare(before, after)
            finally:
                self.clients.close()
                server.stop()

        if self.done >= end:
            checkpoint.save(self.path('policy.bf16'), self.config, 'rl',
                            self.policy.state_dict())

        return end - self.done

    def stages(self):
        """Yields the stages of the plan, each with its last batch."""

        end = 0

        for stage in self.options.plan.stages:
            end += stage.batches
            yield stage, end

    def path(self, name):
        return os.path.join(self.options.out, name)

    def part(self, number):
        """Returns the path of the checkpoint after a batch."""

        return self.path(f'part-{number}{checkpoint.ENDING}')

    def save(self, server, end):
        """Ends a part of the run: the next one starts from what the file has,
        here or in another call.  end: the last batch of the stage."""

        before = {self.path(f) for f in os.listdir(self.options.out)
                  if f.startswith('part-')}
        checkpoint.save(self.part(self.done), self.config, 'rl',
                        self.policy.state_dict())
        write(self.log, {'saved': self.done, 'stage': self.stage,
                         'weights': self.weights,
                         'task': self.tasks.number, 'noise': self.noise})

        # the file before is needed until the log names the new one, and the
        # reference as long as its stage

        kept = {self.part(self.done)}

        if self.done < end:
            kept.add(self.part(self.first))

        for path in before - kept:
            os.unlink(path)

        self.load(self.done)
        server.replace(self.export())

    def load(self, number):
        self.policy.load_state_dict(checkpoint.load(self.part(number))
                                    ['model'])
        self.learner.restart()

    def resume(self):
        """Continues after the last checkpoint of --out, if there is one.
        Later batches, whose weights were lost, leave the log, too.  Returns
        true if an earlier call picked the families."""

        path = self.path('log.jsonl')

        if not os.path.exists(path):
            return False

        lines.repair(path)
        logged = lines.read(path)
        saved = [x for x in logged if 'saved' in x]
        lost = ('batch',) if saved else ('batch', 'pick', 'eval', 'paired')
        done = saved[-1]['saved'] if saved else 0
        logged = [x for x in logged if not any(k in x for k in lost)
                  or x.get('batch', math.inf) <= done]
        picked = [x['pick'] for x in logged if 'pick' in x]

        if saved:
            self.continues(saved[-1], picked)

        lines.replace(path, logged)
        self.evals = sum('eval' in x for x in logged)
        self.measured = max((x['batches'] for x in logged if 'eval' in x),
                            default=None)

        return bool(picked)

    def continues(self, last, picked):
        """Sets what a call had after the line `last` of the log."""

        if last['weights'] != self.weights:
            raise RunFailed(f'{self.options.out} begins with the weights '
                            f'{last["weights"]}; {self.options.model} has '
                            + self.weights)

        stage, end = next((x for x in self.stages() if last['saved'] <= x[1]),
                          (None, 0))
        name = stage.name if stage else 'none'

        if last['stage'] != name:
            raise RunFailed(f'{self.options.out}: batch {last["saved"]} is of '
                            f'the stage {last["stage"]}; with these options '
                            f'it would be of {name}')

        self.done = end - stage.batches

        # the weights before a stage are its reference; those before a stage
        # that has ended are gone

        if self.done:
            self.load(end if last['saved'] == end else self.done)
            self.begin(stage)

        if picked:
            self.options.families = picked[0]
            self.tasks.mixture = plan.Mixture(dict.fromkeys(picked[0], 1))

        for _ in range((last['saved'] - self.done) * self.options.tasks):
            self.tasks.mixture.draw()

        self.done, self.noise = last['saved'], last['noise']
        self.tasks.number = last['task']
        self.load(self.done)

    def pick(self, server):
        """Leaves the families that --pick describes."""

        o = self.options
        groups, seconds = self.rollouts(
            server, self.tasks.draw(8 * len(o.families)), o.group)
        share = {f: mean(len({t.reward for t in g}) > 1 for g in groups
                         if g[0].family == f) for f in o.families}
        o.families = sorted(share, key=share.get, reverse=True)[:o.pick]
        self.tasks.mixture = plan.Mixture(dict.fromkeys(o.families, 1))
        write(self.log, {'pick': o.families, **described(groups, seconds),
                         'mixed_of': share})

    def compare(self, before, after):
        """Logs the difference of paired tasks, with an interval of 95 %."""

        if before is None:
            return

        for family in sorted({f for f, _ in before}):
            d = [b - a for (f, a), (_, b) in zip(before, after)
                 if f == family]
            m = mean(d)
            deviation = math.sqrt(mean((x - m) ** 2 for x in d) / len(d))
            write(self.log, {'paired': family, 'tasks': len(d),
                             'difference': round(m, 4),
                             'interval': [round(m - 1.96 * deviation, 4),
                                          round(m + 1.96 * deviation, 4)]})


def rounded(value):
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}

    return round(value, 5) if isinstance(value, float) else value


def write(log, values):
    line = json.dumps(rounded(values))
    log.write(line + '\n')
    log.flush()
    print(line, flush=True)


def main():
    options = arguments()

    ends_on_signal()
    os.makedirs(options.out, exist_ok=True)
    torch.manual_seed(options.seed)

    try:
        left = Run(options).run()
    except (RunFailed, lines.BadLines) as e:
        sys.exit(f'train.rl: {e}')

    if left > 0:
        print(f'{left} batches are left; the same command continues',
              file=sys.stderr)
        sys.exit(LEFT)


if __name__ == '__main__':
    main()
