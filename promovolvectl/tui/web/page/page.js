// The keys go to the dashboard without a click first. It is there once the library's script has loaded.
addEventListener("load", () => document.querySelector(".xterm-helper-textarea")?.focus());
