// Copyright (C) The nginx-dsa authors
//
// Uses the helpers of OpenAI's client, which read what the server sends more
// strictly than its plain calls.  Reads lines of JSON, JOBS, and prints what it
// got for each as one line of JSON.
//
//     node helpers.mjs BASE_URL
//
// JOBS is an array of [COMMAND, OPTIONS], whose results are printed as an array.
// Commands: stream (the final completion and the events of a stream), parse,
// parseStream and responsesParse (an answer in the form of {a: integer}),
// parseTools (a call with such arguments), runTools and runToolsStream (a loop
// in which each call gets the next one of "results"), abort (a stream is left
// after its first text).  OPTIONS are those of the request, and "ctl": a socket
// of the engine that gets a "go" after the first text of a stream.

import { connect } from "node:net";
import { createInterface } from "node:readline";

import OpenAI from "openai";
import { zodFunction, zodResponseFormat,
         zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "sk-test",
                            maxRetries: 0, timeout: 60000 });
const chat = client.chat.completions;

const form = z.object({ a: z.int().min(-1000).max(1000) });

const commands = {

    async stream({ ctl, ...request }) {
        const got = { content: "", calls: [] };
        const s = chat.stream(request);

        s.on("content.delta", (e) => {
            if (got.content === "" && ctl !== undefined) {
                connect(ctl).resume().end("go\n");
            }

            got.content += e.delta;
        });
        s.on("content.done", (e) => { got.done = e.content; });
        s.on("content", (_, snapshot) => { got.snapshot = snapshot; });
        s.on("tool_calls.function.arguments.done",
             (e) => got.calls.push([e.index, e.name, e.arguments]));

        const final = await s.finalChatCompletion();

        return { ...got, final };
    },

    async parse(request) {
        const c = await chat.parse({
            ...request, response_format: zodResponseFormat(form, "answer") });

        return { parsed: c.choices[0].message.parsed };
    },

    async parseStream(request) {
        const s = chat.stream({
            ...request, response_format: zodResponseFormat(form, "answer") });
        const c = await s.finalChatCompletion();

        return { parsed: c.choices[0].message.parsed };
    },

    async parseTools(request) {
        const c = await chat.parse({
            ...request,
            tools: [zodFunction({ name: "get", parameters: form })] });
        const call = c.choices[0].message.tool_calls[0];

        return { parsed: call.function.parsed_arguments };
    },

    async responsesParse(request) {
        const r = await client.responses.parse({
            ...request, text: { format: zodTextFormat(form, "answer") } });

        return { parsed: r.output_parsed };
    },

    async runTools(request) {
        return run(request);
    },

    async runToolsStream(request) {
        return run({ ...request, stream: true });
    },

    async abort(request) {
        const s = chat.stream(request);
        let text = null;

        s.on("content", (delta) => {
            text ??= delta;
            s.abort();
        });

        try {
            await s.done();
        } catch (e) {
            return { text, failed: e.constructor.name };
        }

        return { text, failed: null };
    },
};

async function run({ results, ...request }) {
    const got = [];

    const runner = chat.runTools({
        ...request,
        tools: [{ type: "function", function: {
            name: "get", description: "D", parse: JSON.parse,
            parameters: { type: "object",
                          properties: { city: { type: "string" } } },
            function: ({ city }) => {
                got.push(city);
                return results.shift();
            } } }],
    });

    return { final: await runner.finalContent(), got,
             roles: runner.messages.map((m) => m.role),
             usage: await runner.totalUsage() };
}

for await (const line of createInterface({ input: process.stdin })) {
    const all = [];

    for (const [command, options] of JSON.parse(line)) {
        try {
            all.push(await commands[command](options));

        } catch (e) {
            all.push({ error: e.constructor.name, status: e.status ?? null,
                       message: e.message, param: e.param ?? null });
        }
    }

    console.log(JSON.stringify(all));
}
