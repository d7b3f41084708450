// Copyright (C) The nginx-dsa authors
//
// Talks to a server with Anthropic's client.  Reads lines of JSON, [PLACE,
// COMMAND, ARGUMENTS], and prints what it got for each as one line of JSON.
//
//     node client.mjs URL
//
// The client's base URL is URL/PLACE.
//
// Commands: create and stream (the same request both ways), count, tools (a
// loop in which each call is answered by the next one of "results"), runner and
// runnerStream (the same loop by the client's own runner), parse (an answer in
// the form of "schema"), abort (a stream is left after its first text).

import { createInterface } from "node:readline";

import Anthropic from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";
import { jsonSchemaOutputFormat } from "@anthropic-ai/sdk/helpers/json-schema";

function clientOf(place) {
    return new Anthropic({ baseURL: `${process.argv[2]}/${place}`,
                           apiKey: "sk-test", maxRetries: 0,
                           timeout: 120000 });
}

// What both ways of an answer have.

function plain(message) {
    return {
        type: message.type,
        role: message.role,
        content: message.content,
        stop_reason: message.stop_reason,
        stop_sequence: message.stop_sequence,
        usage: message.usage,
    };
}

async function streamed(client, request, got) {
    const stream = client.messages.stream(request);

    for (const [event, member] of [["text", "text"],
                                   ["thinking", "thinking"]]) {
        got[member] = "";
        stream.on(event, delta => { got[member] += delta; });
    }

    stream.on("inputJson", () => { got.json = (got.json ?? 0) + 1; });

    return stream.finalMessage();
}

async function run(client, { results, tools, ...request }) {
    const calls = [];

    const last = await client.beta.messages.toolRunner({
        ...request,
        tools: tools.map((tool) => betaTool({
            name: tool.name, description: tool.description,
            inputSchema: tool.input_schema,
            run: (input) => {
                calls.push(input);
                return results.shift();
            },
        })),
    }).runUntilDone();

    return { ...plain(last), calls };
}

const commands = {

    async create(client, args) {
        return plain(await client.messages.create(args));
    },

    async stream(client, args) {
        const got = {};

        return { ...plain(await streamed(client, args, got)), got };
    },

    async count(client, args) {
        return client.messages.countTokens(args);
    },

    async tools(client, args) {
        const { results, ...request } = args;
        const rounds = [];

        for (const result of [...results, null]) {
            const message = await streamed(client, request, {});

            rounds.push(plain(message));

            const calls = message.content.filter(b => b.type === "tool_use");

            if (calls.length === 0 || result === null) {
                break;
            }

            request.messages = [
                ...request.messages,
                { role: "assistant", content: message.content },
                { role: "user", content: calls.map(call => ({
                    type: "tool_result", tool_use_id: call.id,
                    content: result })) },
            ];
        }

        return { rounds, messages: request.messages };
    },

    async runner(client, args) {
        return run(client, args);
    },

    async runnerStream(client, args) {
        return run(client, { ...args, stream: true });
    },

    async parse(client, args) {
        const { schema, ...request } = args;
        const m = await client.messages.parse({ ...request, output_config: {
            format: jsonSchemaOutputFormat(schema) } });

        return { parsed: m.parsed_output };
    },

    async abort(client, args) {
        const stream = client.messages.stream(args);
        let text = null;

        stream.on("text", delta => {
            text ??= delta;
            stream.abort();
        });

        try {
            await stream.done();
        } catch (e) {
            return { text, error: e.constructor.name };
        }

        return { text, error: null };
    },
};

for await (const line of createInterface({ input: process.stdin })) {
    const [place, command, args] = JSON.parse(line);

    try {
        console.log(JSON.stringify(
            await commands[command](clientOf(place), args)));

    } catch (e) {
        console.log(JSON.stringify({
            error: e.constructor.name, status: e.status ?? null,
            message: e.message, type: e.type ?? null,
            request_id: e.requestID ?? null, body: e.error ?? null,
        }));
    }
}
