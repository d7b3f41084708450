// Copyright (C) The nginx-dsa authors
//
// The conversation: its messages, and the requests that continue it.

import { ApiError, chat } from "./api.js";
import { $, announce, el, icon } from "./dom.js";
import { askForKey, requestFields, systemPrompt, useCalculator,
         usesCalculator } from "./options.js";
import { keepChat, keptChat } from "./store.js";
import { runTool } from "./tools.js";
import { AnswerView, UserView } from "./turn.js";

const ROUNDS = 16;              // of calls that this page answers by itself
const NEAR = 60;                // pixels above the end that count as the end

const EXAMPLES = [
    ["What is 48 times 27?", false],
    ["What is nginx-dsa?", false],
    ["Hanna is in the garden and Omar is in the kitchen. Where is Omar?",
     false],
    ["What is 48 * 27 - 19?", true],
];

// Messages in their order: { message, view }.  view is null for the result of
// a tool, which the answer before it shows.

let entries = [];
let running = null;             // the AbortController of the answer
let follows = true;             // the end of the text stays in view
let kept = true;                // a reload has the chat


function scrolled() {
    const box = $("scroll");

    follows = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
    $("follow").hidden = follows;
}


function grown() {
    const box = $("scroll");

    if (follows) {
        box.scrollTop = box.scrollHeight;

    } else {
        $("follow").hidden = false;
    }
}


function toEnd() {
    follows = true;
    $("follow").hidden = true;
    grown();
}


function add(message, view) {
    entries.push({ message, view });

    if (view !== null) {
        $("turns").append(view.node);
    }

    $("welcome").hidden = true;
    $("chat").classList.remove("empty");
}


// Removes the messages from this index on.

function truncate(index) {
    for (const { view } of entries.splice(index)) {
        view?.node.remove();
    }
}


// Stores the chat for a reload of the page.  The first time that this is not
// possible, the last answer has a note.

function keep() {
    const last = entries.findLast((e) => e.message.role === "assistant");

    if (keepChat(entries.map(({ message, view }) => ({
            message, thought: view?.thought ?? "" }))))
    {
        kept = true;

    } else if (kept && last !== undefined) {
        kept = false;
        last.view.note("This chat is lost when the page is loaded again.");
    }
}


function userView(text) {
    const view = new UserView(text, (changed) => {
        stop();
        truncate(entries.findIndex((entry) => entry.view === view));
        say(changed);
    });

    return view;
}


function say(text) {
    add({ role: "user", content: text }, userView(text));
    keep();
    toEnd();
    answer();
}


// Shows the chat of the page before it was loaded again.

function recall() {
    let view = null;
    let results = 0;

    for (const { message, thought } of keptChat()) {
        if (message.role === "user") {
            add(message, userView(message.content));

        } else if (message.role === "tool") {
            add(message, null);

            if (view?.calls[results] !== undefined) {
                view.result(view.calls[results++], message.content, "Result");
            }

        } else {
            view = new AnswerView(grown);
            results = 0;
            add(message, view);
            view.recall(message, thought, again);
        }
    }

    toEnd();
}


function again() {
    stop();
    truncate(entries.findLastIndex((e) => e.message.role === "user") + 1);
    answer();
}


function stop() {
    running?.abort(new DOMException("stopped", "AbortError"));
}


function showRunning(controller) {
    const send = $("send");

    running = controller;
    send.replaceChildren(icon(controller === null ? "send" : "stop"));
    send.setAttribute("aria-label", controller === null ? "Send" : "Stop");
    send.title = controller === null ? "Send (Enter)" : "Stop (Esc)";
}


// The messages as the API reads them.  An answer without text and calls, which
// was stopped or refused, is left out.

function history() {
    const system = systemPrompt();
    const list = entries.map((entry) => entry.message).filter(
        (m) => m.role !== "assistant" || m.content !== "" || m.tool_calls);

    return system === "" ? list
                         : [{ role: "system", content: system }, ...list];
}


// One request.  Returns its calls of tools.

async function ask(view, message, signal) {
    const body = { model: $("model").value, messages: history(),
                   ...requestFields() };
    let usage = null;
    let firstToken = null;
    let reason = null;

    add(message, view);
    toEnd();
    announce("The answer has begun.");

    try {
        for await (const chunk of chat(body, signal)) {
            const choice = chunk.choices?.[0];
            const delta = choice?.delta || {};

            usage = chunk.usage || usage;
            reason = choice?.finish_reason || reason;

            if (delta.reasoning_content) {
                firstToken ??= performance.now();
                view.think(delta.reasoning_content);
            }

            if (delta.content) {
                firstToken ??= performance.now();
                message.content += delta.content;
                view.say(delta.content);
            }

            for (const piece of delta.tool_calls || []) {
                firstToken ??= performance.now();
                view.call(piece);
            }
        }

        if (reason === "length") {
            view.note("The answer reached the limit of tokens.");
        }

        const calls = view.calls.filter((call) => call !== undefined);

        if (calls.length > 0) {
            message.reasoning_content = view.thought;
            message.tool_calls = calls.map((call) => ({
                id: call.id, type: "function",
                function: { name: call.name, arguments: call.arguments } }));
        }

        return reason === "tool_calls" ? calls : [];

    } finally {
        view.end(usage, firstToken, again);
        keep();
    }
}


async function runCalls(calls, view, signal) {
    const results = await Promise.all(calls.map((call) => {
        const result = runTool(call.name, call.arguments, usesCalculator());

        if (result === null) {
            announce(`The model calls ${call.name}; write its result.`);
            return view.query(call, signal);
        }

        view.result(call, result, "Result");

        return result;
    }));

    calls.forEach((call, i) => add({ role: "tool", tool_call_id: call.id,
                                     content: results[i] }, null));
    keep();
}


// Answers the conversation as it is, with as many requests as calls of tools
// need.

async function answer() {
    const controller = new AbortController();
    let view = null;

    showRunning(controller);

    try {
        for (let round = 0; round < ROUNDS; round++) {
            view = new AnswerView(grown);

            const calls = await ask(view, { role: "assistant", content: "" },
                                    controller.signal);

            if (calls.length === 0) {
                announce("The answer is complete.");
                return;
            }

            await runCalls(calls, view, controller.signal);
        }

        view.note(`Stopped after ${ROUNDS} rounds of calls.`);

    } catch (error) {
        if (error.name === "AbortError") {
            view.note("Stopped.");
            announce("The answer was stopped.");

        } else {
            view.fail(error instanceof ApiError ? error
                : new ApiError(0, `The page failed: ${error.message}`, null));
            grown();
        }

        if (error.status === 401) {
            askForKey();
        }

    } finally {
        if (running === controller) {
            showRunning(null);
        }
    }
}


// The field grows with its text.

function fit() {
    const field = $("prompt");

    field.style.height = "auto";
    field.style.height = Math.min(field.scrollHeight, 240) + "px";
}


function submit() {
    const field = $("prompt");
    const text = field.value;

    if (running !== null || text.trim() === "") {
        return;
    }

    field.value = "";
    fit();
    say(text);
}


function pressed(event) {
    if (event.key !== "Enter" || event.isComposing) {
        return;
    }

    // the keyboard of a phone has no Shift+Enter

    const send = event.ctrlKey || event.metaKey
                 || (!event.shiftKey && !matchMedia("(pointer: coarse)")
                                            .matches);

    if (send) {
        event.preventDefault();
        submit();
    }
}


export function newChat() {
    stop();
    truncate(0);
    keep();
    $("welcome").hidden = false;
    $("chat").classList.add("empty");
    toEnd();
    $("prompt").focus();
}


export function startChat() {
    showRunning(null);

    $("chat").classList.add("empty");
    $("new-chat").append(icon("plus"));
    $("new-chat").addEventListener("click", newChat);
    $("prompt").addEventListener("keydown", pressed);
    $("prompt").addEventListener("input", fit);
    $("follow").addEventListener("click", toEnd);
    $("scroll").addEventListener("scroll", scrolled, { passive: true });
    $("send").addEventListener("click", () => {
        if (running !== null) {
            stop();

        } else {
            submit();
        }

        $("prompt").focus();
    });

    // a part of an answer is kept as well

    window.addEventListener("pagehide", () => {
        if (running !== null) {
            keep();
        }
    });

    document.addEventListener("keydown", (event) => {
        if (event.key === "Escape" && !$("options").open) {
            stop();
        }
    });

    for (const [text, calculator] of EXAMPLES) {
        $("examples").append(el("li", {}, el("button", {
            type: "button", class: "example", on: { click() {
                if (calculator) {
                    useCalculator();
                }

                say(text);
                $("prompt").focus();
            } } }, text, calculator ? el("small", {}, "with a calculator")
                                    : null)));
    }

    recall();
}
