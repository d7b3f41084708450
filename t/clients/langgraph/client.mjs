// Copyright (C) The nginx-dsa authors
//
// LangGraph's agents on LangChain's classes:
//
//     node client.mjs BASE_URL < JOBS
//
// JOBS is an array of [CLASS, COMMAND, OPTIONS]; prints an array of results.
// Classes: openai, responses, anthropic.  Commands: tools (a graph whose calls
// get "results" one after another, streamed if "streamed"), object (an agent
// whose response has a form), turns (of "prompts" in one thread of a
// checkpointer).

import { readFileSync } from "node:fs";
import { webcrypto } from "node:crypto";

import { ChatAnthropic } from "@langchain/anthropic";
import { tool } from "@langchain/core/tools";
import { END, MemorySaver, MessagesAnnotation, START,
         StateGraph } from "@langchain/langgraph";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { ChatOpenAI } from "@langchain/openai";
import { z } from "zod";

globalThis.crypto ??= webcrypto;

const baseURL = process.argv[2];
const settings = { apiKey: "sk-test", configuration: { baseURL },
                   maxRetries: 0 };

const classes = {
    openai: (model) => new ChatOpenAI({ ...settings, model }),
    responses: (model) => new ChatOpenAI({ ...settings, model,
                                           useResponsesApi: true }),
    anthropic: (model) => new ChatAnthropic({
        model, apiKey: "sk-test", maxRetries: 0,
        anthropicApiUrl: baseURL.replace(/\/v1$/, "") }),
};

function user(content) {
    return { messages: [{ role: "user", content }] };
}

function get(results) {
    return tool(() => results.shift(), {
        name: "get", description: "Gets.",
        schema: z.object({ city: z.string() }) });
}

function plain(messages) {
    return {
        text: messages.at(-1).text,
        calls: messages.flatMap((m) => m.tool_calls ?? [])
            .map((c) => [c.name, c.args]),
    };
}

const commands = {
    async tools(llm, { prompt, results, streamed }) {
        const graph = createReactAgent({ llm, tools: [get(results)] });

        if (!streamed) {
            return plain((await graph.invoke(user(prompt))).messages);
        }

        let last = null;
        let deltas = "";

        for await (const [mode, part] of await graph.stream(user(prompt), {
            streamMode: ["values", "messages"] }))
        {
            if (mode === "values") {
                last = part.messages;

            } else if (part[0].type === "ai") {
                deltas += part[0].text;
            }
        }

        return { ...plain(last), deltas };
    },

    // The agent asks for the form behind its answer.  In Anthropic's API the
    // model would continue that answer, so there it is a node of its own.

    async object(llm, { prompt }) {
        const schema = z.object({ a: z.int().min(-1000).max(1000) });

        if (!(llm instanceof ChatAnthropic)) {
            const agent = createReactAgent({ llm, tools: [],
                                             responseFormat: schema });

            return { object: (await agent.invoke(user(prompt)))
                             .structuredResponse };
        }

        const form = llm.withStructuredOutput(schema);
        const graph = new StateGraph(MessagesAnnotation)
            .addNode("form", async ({ messages }) => ({ messages: [{
                role: "assistant",
                content: JSON.stringify(await form.invoke(messages)) }] }))
            .addEdge(START, "form").addEdge("form", END).compile();

        return { object: JSON.parse((await graph.invoke(user(prompt)))
                                    .messages.at(-1).text) };
    },

    async turns(llm, { prompts }) {
        const graph = createReactAgent({ llm, tools: [],
                                         checkpointer: new MemorySaver() });
        const texts = [];

        for (const prompt of prompts) {
            const { messages } = await graph.invoke(user(prompt), {
                configurable: { thread_id: "1" } });

            texts.push(messages.at(-1).text);
        }

        return { texts };
    },
};

const all = [];

for (const [name, command, options] of JSON.parse(readFileSync(0, "utf8"))) {
    try {
        all.push(await commands[command](classes[name](options.model),
                                         options));

    } catch (e) {
        all.push({ error: e.name, message: e.message });
    }
}

console.log(JSON.stringify(all));
