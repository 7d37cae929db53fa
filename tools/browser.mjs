// A headless Chromium, spoken to over a pipe (Chrome DevTools Protocol). No packages are needed.

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

// The browser that QUARRY_CHROMIUM names, or the first that is installed; null where there is none.
export function installed() {
  const names = process.env.QUARRY_CHROMIUM ? [process.env.QUARRY_CHROMIUM] : NAMES;
  return names.find((name) => spawnSync(name, ["--version"], { stdio: "ignore" }).status === 0) ?? null;
}

export class Browser {
  #child;
  #home;
  #asked = new Map();
  #next = 1;
  #listeners = [];
  #rest = "";

  constructor(program) {
    this.#home = mkdtempSync(join(tmpdir(), "quarry-browser-"));
    const flags = [
      "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
      "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
      "--user-data-dir=" + this.#home, "--remote-debugging-pipe", "about:blank",
    ];
    this.#child = spawn(program, flags, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    this.#child.stdio[4].setEncoding("utf8").on("data", (text) => this.#read(text));
    this.#child.on("exit", () => {
      for (const { reject } of this.#asked.values()) reject(new Error("the browser ended"));
      this.#asked.clear();
    });
  }

  #read(text) {
    const messages = (this.#rest + text).split("\0");
    this.#rest = messages.pop();
    for (const message of messages.map((one) => JSON.parse(one))) {
      const asked = this.#asked.get(message.id);
      this.#asked.delete(message.id);
      if (asked && message.error) asked.reject(new Error(message.error.message));
      else if (asked) asked.resolve(message.result);
      else for (const listener of this.#listeners) listener(message);
    }
  }

  ask(method, params = {}, sessionId = undefined) {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#asked.set(id, { resolve, reject });
      this.#child.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + "\0");
    });
  }

  listen(listener) {
    this.#listeners.push(listener);
  }

  async page() {
    const { targetId } = await this.ask("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.ask("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this, sessionId);
    for (const domain of ["Page", "Runtime", "Log", "Network"]) await page.ask(domain + ".enable");
    return page;
  }

  async close() {
    const ended = new Promise((resolve) => this.#child.on("exit", resolve));
    this.ask("Browser.close").catch(() => {});
    const limit = setTimeout(() => this.#child.kill("SIGKILL"), 5000);
    await ended;
    clearTimeout(limit);
    rmSync(this.#home, { recursive: true, force: true, maxRetries: 5 });
  }
}

class Page {
  // What went wrong on the page: exceptions, refusals by its policy, requests to elsewhere.
  faults = [];
  #browser;
  #session;
  #origin = null;

  constructor(browser, session) {
    this.#browser = browser;
    this.#session = session;
    browser.listen(({ sessionId, method, params }) => {
      if (sessionId !== session) return;
      if (method === "Runtime.exceptionThrown") {
        const { text, exception } = params.exceptionDetails;
        this.faults.push("exception: " + (exception?.description ?? text));
      }
      if (method === "Log.entryAdded" && params.entry.source === "security") this.faults.push("policy: " + params.entry.text);
      if (method === "Network.requestWillBeSent") {
        const url = new URL(params.request.url);
        if (url.protocol !== "data:" && this.#origin && url.origin !== this.#origin) this.faults.push("asked elsewhere: " + url);
      }
    });
  }

  ask(method, params = {}) {
    return this.#browser.ask(method, params, this.#session);
  }

  on(method, listener) {
    this.#browser.listen((message) => {
      if (message.sessionId === this.#session && message.method === method) listener(message.params);
    });
  }

  // `view`: width, height, dark, scale.
  async view({ width, height, dark = false, scale = 1 }) {
    await this.ask("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: scale, mobile: width < 600 });
    const features = [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }];
    await this.ask("Emulation.setEmulatedMedia", { features });
  }

  async open(url) {
    this.#origin = new URL(url).origin;
    await this.ask("Page.navigate", { url });
    // Between two pages there is a moment in which nothing can be asked.
    await this.until("document.readyState === 'complete' && location.href === " + JSON.stringify(new URL(url).href), "the page is there");
  }

  // The value of an expression on the page; a promise is waited for.
  async value(expression) {
    const asked = { expression, awaitPromise: true, returnByValue: true, userGesture: true };
    const { result, exceptionDetails } = await this.ask("Runtime.evaluate", asked);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  async until(expression, what, seconds = 30) {
    const end = Date.now() + seconds * 1000;
    for (;;) {
      let found = false;
      try {
        found = await this.value(expression);
      } catch (error) {
        if (Date.now() > end) throw error;
      }
      if (found) return found;
      if (Date.now() > end) throw new Error("waited in vain until " + what);
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  }

  async press(key) {
    const text = key.length === 1 ? key : key === "Enter" ? "\r" : undefined;
    await this.ask("Input.dispatchKeyEvent", { type: "keyDown", key, text, windowsVirtualKeyCode: key === "Enter" ? 13 : key === "Escape" ? 27 : key === "Tab" ? 9 : 0 });
    await this.ask("Input.dispatchKeyEvent", { type: "keyUp", key });
  }

  async picture() {
    const { data } = await this.ask("Page.captureScreenshot", { format: "png" });
    return Buffer.from(data, "base64");
  }
}
