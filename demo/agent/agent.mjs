// Copyright (C) The nginx-dsa authors
//
// An agent: a model thinks, calls tools until it can answer, and answers.  The
// answer is verified.
//
//     node agent.mjs [--url URL] [--model NAME] [--family trip] [--seed 7]
//                    [--sampling-seed N] [--parallel N]
//
// The task, its tools and the check of its answer come from demo/tasks, which
// runs as a process of its own.  With the same sampling seed the model repeats
// the same answer.  With --parallel several rollouts of the task run at the same
// time, and the one with the fewest messages of the model is used ("parallel
// fewest step").  Up to 8 rollouts begin with the choices of one request, so that
// its prompt is computed once.  The exit status is 0 if the answer was verified, 1 if it was
// wrong, and 2 if there was no answer.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import OpenAI from "openai";

const MAX_ROUNDS = 40;
const MAX_PARALLEL = 64;
const MAX_CHOICES = 8;

const { values: options } = parseArgs({
    options: {
        url: { type: "string", default: "http://127.0.0.1:8080/v1" },
        model: { type: "string" },
        family: { type: "string", default: "trip" },
        seed: { type: "string", default: "7" },
        "sampling-seed": { type: "string" },
        parallel: { type: "string", default: "1" },
    },
});

const parallel = Number(options.parallel);

if (!Number.isInteger(parallel) || parallel < 1 || parallel > MAX_PARALLEL) {
    console.error(`agent: --parallel "${options.parallel}" is not a number of `
                  + `rollouts; expected 1 to ${MAX_PARALLEL}`);
    process.exit(2);
}

const samplingSeed = options["sampling-seed"] === undefined
    ? undefined : Number(options["sampling-seed"]);

const client = new OpenAI({
    baseURL: options.url,
    apiKey: process.env.OPENAI_API_KEY ?? "any",
    maxRetries: 0,
});

const color = process.stdout.isTTY && !process.env.NO_COLOR;
const dim = (text) => color ? `\x1b[2m${text}\x1b[22m` : text;
const bold = (text) => color ? `\x1b[1m${text}\x1b[22m` : text;


// Starts the process of the task.  It writes one line of JSON with the task,
// and then one line for each line of JSON that it reads.

function startTask(family, seed) {

    const demo = fileURLToPath(new URL("..", import.meta.url));
    const child = spawn("python3", ["-m", "tasks.serve", family, seed], {
        stdio: ["pipe", "pipe", "inherit"],
        env: { PYTHONPATH: demo, ...process.env },
    });

    // if the process ends early, read() reports it

    child.on("error", () => {});
    child.stdin.on("error", () => {});

    const lines = createInterface({ input: child.stdout })
        [Symbol.asyncIterator]();

    async function read() {

        const { value: line, done } = await lines.next();

        if (done) {
            throw new Error("python3 -m tasks.serve ended");
        }

        const value = JSON.parse(line);

        if (value.error !== undefined) {
            throw new Error(`tasks.serve: ${value.error}`);
        }

        return value;
    }

    function ask(value) {
        child.stdin.write(JSON.stringify(value) + "\n");
        return read();
    }

    return { read, ask, end: () => child.stdin.end() };
}


// Yields the parts of all choices of an answer, as they arrive.

async function* choices(request, signal) {

    const stream = await client.chat.completions.create(
        { ...request, stream: true }, { signal });

    for await (const chunk of stream) {
        yield* chunk.choices;
    }
}


// The first message of n rollouts, which all send the same request.  Returns a
// function that yields the parts of choice k.  The first call sends the request.

function opening(n) {

    let streams;

    async function send(request) {

        try {
            for await (const choice of choices({ ...request, n })) {
                streams[choice.index].write(choice);
            }

            streams.forEach((stream) => stream.end());

        } catch (e) {
            streams.forEach((stream) => stream.destroy(e));
        }
    }

    return (request, k) => {

        if (streams === undefined) {
            streams = Array.from(
                { length: n }, () => new PassThrough({ objectMode: true }));

            // a rollout that ended does not read its stream

            streams.forEach((stream) => stream.on("error", () => {}));
            send(request);
        }

        return streams[k];
    };
}


// Prints one message of the model as it arrives, and returns the whole message.

async function say(parts, rollout) {

    const print = (text) => rollout.print(text);
    const message = { role: "assistant", content: "" };
    let last = "";
    let finish = null;

    // reasoning, answer and calls are paragraphs of their own

    function show(part, text) {
        print((part !== last ? "\n\n" : "") + text);
        last = part;
    }

    for await (const choice of parts) {

        const delta = choice.delta;
        finish = choice.finish_reason ?? finish;

        if (delta.reasoning_content) {
            message.reasoning_content ??= "";
            message.reasoning_content += delta.reasoning_content;
            show("reasoning", dim(delta.reasoning_content));
        }

        if (delta.content) {
            message.content += delta.content;
            show("content", delta.content);
        }

        // the first part of a call has its name, later parts have arguments

        for (const part of delta.tool_calls ?? []) {

            message.tool_calls ??= [];

            const call = message.tool_calls[part.index] ??= {
                id: part.id,
                type: "function",
                function: { name: part.function.name, arguments: "" },
            };
            const text = part.function.arguments ?? "";

            call.function.arguments += text;

            if (part.id) {
                show("calls", (part.index > 0 ? "\n" : "")
                              + bold(part.function.name) + " ");
            }

            show("calls", text);
        }
    }

    if (finish !== "stop" && finish !== "tool_calls") {
        throw new Error(`the message was cut off (${finish})`);
    }

    return message;
}


// Lets the model call tools until it answers.  The reasoning is sent back with
// the calls, so that the model need not repeat it.

async function answer(task, tools, messages, rollout) {

    const print = (text) => rollout.print(text);

    for (let round = 0; round < MAX_ROUNDS; round++) {

        const message = await say(rollout.send({
            model: options.model,
            messages,
            tools: tools.length > 0 ? tools : undefined,
            thinking: { type: "enabled" },
        }), rollout);

        messages.push(message);
        rollout.step();

        if (message.tool_calls === undefined) {
            return message.content;
        }

        print("\n");

        for (const { id, function: call } of message.tool_calls) {

            const { result } = await task.ask(
                { call: call.name, arguments: call.arguments });

            print(`\n= ${call.name}: ${result}`);
            messages.push({ role: "tool", tool_call_id: id, content: result });
        }
    }

    throw new Error(`no answer after ${MAX_ROUNDS} messages`);
}


// Plays the task once.  Returns true if all turns were right.

async function play(rollout) {

    const print = (text) => rollout.print(text);
    const task = startTask(options.family, options.seed);

    try {
        const { system, tools, turns } = await task.read();
        const messages = system ? [{ role: "system", content: system }] : [];
        let verified = true;

        for (const user of turns) {

            print(bold(`> ${user}`));
            messages.push({ role: "user", content: user });

            const { right, why } = await task.ask(
                { answer: await answer(task, tools, messages,
                                                  rollout) });

            print(right ? "\n\nverified\n\n" : `\n\nnot verified: ${why}\n\n`);
            verified &&= right;
        }

        return verified;

    } finally {
        task.end();
    }
}


// Plays the task several times at once, and prints the rollout with the fewest
// steps; of equals, the one that ended first.  A rollout that cannot win any more
// is stopped.

async function fewest() {

    const ended = [];
    const groups = [];
    let best = Infinity;

    for (let first = 0; first < parallel; first += MAX_CHOICES) {
        groups.push(opening(Math.min(MAX_CHOICES, parallel - first)));
    }

    const rollouts = Array.from({ length: parallel }, (_, index) => {

        const abort = new AbortController();

        return {
            index,
            steps: 0,
            text: "",
            signal: abort.signal,
            stop: () => abort.abort(),
            print(text) { this.text += text; },
            send(request) {

                const k = index % MAX_CHOICES;

                // the seed of choice k is that of the request and k

                return this.steps === 0
                    ? groups[(index - k) / MAX_CHOICES](
                        seeded(request, index - k), k)
                    : choices(seeded(request, index), this.signal);
            },
            step() {
                this.steps++;

                if (this.steps >= best) {
                    this.stop();
                }
            },
        };
    });

    const results = await Promise.allSettled(rollouts.map(async (rollout) => {

        rollout.verified = await play(rollout);

        ended.push(rollout);
        best = Math.min(best, rollout.steps);

        for (const other of rollouts) {
            if (other.steps >= best) {
                other.stop();
            }
        }
    }));

    if (ended.length === 0) {
        throw results[0].reason;
    }

    ended.sort((a, b) => a.steps - b.steps);

    const [winner] = ended;

    process.stdout.write(winner.text);
    process.stdout.write(`rollout ${winner.index + 1} of ${parallel}, `
                         + `${winner.steps} steps\n`);

    return winner.verified;
}


// Each rollout has a sampling seed of its own.

function seeded(request, index) {
    return samplingSeed === undefined
        ? request : { ...request, seed: samplingSeed + index };
}


async function main() {

    options.model ??= (await client.models.list()).data[0].id;

    if (parallel > 1) {
        return fewest();
    }

    return play({
        index: 0,
        print: (text) => process.stdout.write(text),
        send: (request) => choices(seeded(request, 0)),
        step: () => {},
    });
}


try {
    process.exitCode = await main() ? 0 : 1;

} catch (e) {
    const where = e instanceof OpenAI.APIError ? `${options.url}: ` : "";

    console.error(`\nagent: ${where}${e.message}`);
    process.exitCode = 2;
}
