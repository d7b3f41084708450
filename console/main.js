// Copyright (C) The nginx-dsa authors
//
// Starts the page.

import { models } from "./api.js";
import { newChat, startChat } from "./chat.js";
import { startDashboard } from "./dashboard.js";
import { $, el } from "./dom.js";
import { askForKey, startOptions } from "./options.js";
import { startTheme } from "./theme.js";


// The model of `make demo`, which a newcomer would take for a large one.

const DEMO = "nginx-dsa-demo";
const ABOUT_DEMO = "Answers come from the demonstration model: DeepSeek-V3.2's "
    + "architecture with 15 million parameters. It uses tools, works out small "
    + "sums, reads short texts and plans trips; it knows little of the world.";


// Fills the list of models, and keeps the choice.  The two names that every
// engine serves come last, because they are other names of the same models.

async function listModels() {
    const select = $("model");
    const chosen = select.value;

    try {
        const names = await models();
        const own = names.filter((name) => !name.startsWith("deepseek-"));
        const shown = [...own, ...names.filter((n) => !own.includes(n))];

        select.replaceChildren(...shown.map((name) =>
            el("option", { value: name }, name)));

        if (names.includes(DEMO)) {
            $("about").textContent = ABOUT_DEMO;
        }

        if (names.includes(chosen)) {
            select.value = chosen;
        }

    } catch (error) {
        select.replaceChildren(el("option", { value: "" }, "no models"));
        select.title = error.message;

        if (error.status === 401) {
            askForKey();
        }
    }
}


// The chat of a key is not that of the next one.

function keyChanged(before) {
    if (before !== "") {
        newChat();
    }

    listModels();
}


startTheme();
startOptions(keyChanged);
startChat();
listModels();
startDashboard();
