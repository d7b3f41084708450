// Copyright (C) The nginx-dsa authors
//
// Light, dark, or the theme of the system.

import { $, icon } from "./dom.js";

const THEME_STORE = "dsa-theme";

const THEMES = {
    auto: ["screen", "Theme: that of the system"],
    light: ["sun", "Theme: light"],
    dark: ["moon", "Theme: dark"],
};


function stored() {
    const name = localStorage.getItem(THEME_STORE);

    return name in THEMES ? name : "auto";
}


function showTheme(name) {
    const [glyph, label] = THEMES[name];
    const button = $("theme");

    button.replaceChildren(icon(glyph));
    button.setAttribute("aria-label", label);
    button.title = label;

    if (name === "auto") {
        delete document.documentElement.dataset.theme;

    } else {
        document.documentElement.dataset.theme = name;
    }
}


export function startTheme() {
    showTheme(stored());

    $("theme").addEventListener("click", () => {
        const names = Object.keys(THEMES);
        const next = names[(names.indexOf(stored()) + 1) % names.length];

        localStorage.setItem(THEME_STORE, next);
        showTheme(next);
    });
}
