// Drives the pages of a running demo in a headless browser, as a person would: `node tools/see-pages.mjs BASE`.
// Prints what it found as one JSON object; the test in tests/pages.rs judges it. `--shots DIR` takes pictures as well.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Browser, installed } from "./browser.mjs";

const base = process.argv[2];
const shots = process.argv[3] === "--shots" ? process.argv[4] : null;
const WIDE = { width: 1280, height: 860 };
const PHONE = { width: 390, height: 780, scale: 1.5 };

const program = installed();
if (!program) {
  console.log(JSON.stringify({ skipped: "no Chromium is installed (QUARRY_CHROMIUM names one)" }));
  process.exit(0);
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const browser = new Browser(program);
const page = await browser.page();

async function shot(name) {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  await sleep(400);
  writeFileSync(join(shots, name + ".png"), await page.picture());
}

// Opens an operation's form, changes fields, sends it and waits for the end; what is shown then.
async function ask(id, fields = {}) {
  const form = `document.getElementById(${JSON.stringify(id)}).closest("details").querySelector("form")`;
  await page.value(`(() => {
    const form = ${form};
    form.closest("details").open = true;
    for (const [name, value] of Object.entries(${JSON.stringify(fields)})) {
      const field = [...form.elements].find((one) => one.dataset.name === name);
      field.value = value;
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }
    form.querySelector(".result").dataset.done = "0";
    form.querySelector("button[type=submit]").click();
  })()`);
  await page.until(`${form}.querySelector(".result").dataset.done !== "0"`, id + " is answered");
  return page.value(`(() => {
    const form = ${form};
    const text = (part) => form.querySelector(part).textContent;
    return {
      status: text(".status"), time: text(".time"), size: text(".size"), curl: text(".curl code"),
      headers: Object.fromEntries([...form.querySelectorAll(".headers tr")].map((row) => [...row.cells].map((cell) => cell.textContent))),
      body: text("pre").slice(0, 4000), shown: text("pre").length, elements: form.querySelectorAll("pre *").length,
      images: form.querySelectorAll("pre img, pre script").length, next: !form.querySelector(".next").hidden,
      note: form.querySelector(".note").hidden ? null : text(".note"),
    };
  })()`);
}

async function docs() {
  const found = { operations: [] };
  await page.view(WIDE);
  await page.open(base + "/docs");
  await page.until(`document.querySelector("#chains").textContent.includes("block")`, "the chains are told");
  found.chains = await page.value(`document.querySelector("#chains").textContent`);
  await shot("docs");
  for (const id of await page.value(`[...document.querySelectorAll("details.op")].map((operation) => operation.id)`)) {
    found.operations.push({ id, ...(await ask(id)) });
  }
  // A refusal, an empty place in the path, and one that no address has.
  found.refusal = await ask("A1", { address: "0x12" });
  found.absent = await page.value(`(() => {
    const form = document.querySelector("#A1 form");
    form.querySelector("[data-name=address]").value = "";
    form.requestSubmit();
    return form.querySelector(".status").textContent;
  })()`);
  found.slash = await ask("A1", { address: "../../health?x#y" });
  found.large = await ask("L1", { address: "", topic0: "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef", offset: "10000" });
  found.lines = await ask("L1", { topic0: "", address: "0xe7f1725e7734ce288f8367e1bb143e90bb3f0512", offset: "3", Accept: "application/x-ndjson" });
  // The next page, by the link of the one before.
  await page.value(`document.querySelector("#L1 .result").dataset.done = "0"; document.querySelector("#L1 .next").click()`);
  await page.until(`document.querySelector("#L1 .result").dataset.done !== "0"`, "the next page is there");
  found.next = await page.value(`({ status: document.querySelector("#L1 .status").textContent, cursor: document.querySelector("#L1 [data-name=cursor]").value, body: document.querySelector("#L1 pre").textContent.slice(0, 4000) })`);
  found.finding = await finding();
  found.hostile = await hostile();
  found.huge = await huge();
  found.faults = page.faults.splice(0);
  return found;
}

// Search, keys and deep links.
async function finding() {
  const visible = `[...document.querySelectorAll("details.op")].filter((operation) => operation.checkVisibility()).map((operation) => operation.id)`;
  await page.open(base + "/docs?fresh#T3");
  await page.until(`document.querySelector("#T2").open`, "the linked operation is open");
  const found = { linked: await page.value(`document.querySelector("#side a[aria-current]").hash`) };
  await page.value("document.activeElement.blur()");
  await page.press("/");
  found.focus = await page.value("document.activeElement.id");
  for (const letter of "mined") await page.press(letter);
  found.matches = await page.value(visible);
  found.told = await page.value(`document.querySelector("#found").textContent`);
  await page.press("Enter");
  found.opened = await page.value(`document.querySelector("#A9").open && location.hash`);
  await page.value(`document.querySelector("#search").focus()`);
  await page.press("Escape");
  found.all = (await page.value(visible)).length;
  const values = "address=0x70997970c51812dc3a010c7d01b50e0d17dc79c8&offset=3";
  await page.open(base + "/docs?values#A3?" + values);
  found.curl = await page.value(`document.querySelector("#A3 .curl code").textContent`);
  // With keys alone: from the heading of an operation to its first field and on to sending.
  await page.value(`document.querySelector("#health summary").focus()`);
  await page.press("Enter");
  await page.until(`document.querySelector("#health").open`, "Enter opens it");
  await page.press("Tab");
  await page.press("Enter");
  await page.until(`document.querySelector("#health .result").dataset.done`, "Enter sends it");
  found.keys = await page.value(`document.querySelector("#health .status").textContent`);
  return found;
}

// What is shown where `/health` is answered with this.
let instead = "";
page.on("Fetch.requestPaused", ({ requestId }) => {
  page.ask("Fetch.fulfillRequest", {
    requestId, responseCode: 200, body: Buffer.from(instead).toString("base64"),
    responseHeaders: [{ name: "content-type", value: "application/json" }, { name: "etag", value: "<b>x</b>" }],
  });
});

async function answeredWith(body) {
  instead = body;
  await page.ask("Fetch.enable", { patterns: [{ urlPattern: "*/health" }] });
  const found = await ask("health");
  await page.ask("Fetch.disable");
  return found;
}

// An answer full of HTML is shown as text.
function hostile() {
  return answeredWith(`{"a":"<img src=x onerror=alert(1)>","</pre><script>":"\\u003cb>","broken":["<svg onload=alert(2)>`);
}

// An answer of many megabytes, and how long the page stands still meanwhile.
async function huge() {
  await page.value(`(() => {
    window.longest = 0;
    let last = performance.now();
    const tick = () => { const now = performance.now(); window.longest = Math.max(window.longest, now - last); last = now; setTimeout(tick, 0); };
    tick();
  })()`);
  const row = `{"address":"0x${"ab".repeat(20)}","topics":["0x${"cd".repeat(32)}"],"data":"0x${"00".repeat(300)}","n":12345678901234567890}`;
  const found = await answeredWith(`{"logs":[${Array(16000).fill(row).join(",")}]}`);
  return { ...found, blocked: await page.value("window.longest") };
}

async function status() {
  await page.view(WIDE);
  await page.open(base + "/");
  await page.until(`document.querySelector(".card h2")`, "a chain is shown");
  const text = (selector) => page.value(`document.querySelector(${JSON.stringify(selector)}).innerText`);
  const found = { title: await page.value("document.title"), chains: await text("#chains"), service: await text("#service") };
  const heard = await text("#heard");
  await page.until(`document.querySelector("#heard").innerText !== ${JSON.stringify(heard)}`, "it asked again");
  await page.ask("Network.emulateNetworkConditions", { offline: true, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
  await page.until(`!document.querySelector("#trouble").hidden`, "it says that nobody answers");
  found.trouble = await text("#trouble");
  found.troubleTitle = await page.value("document.title");
  await shot("status-unreachable");
  await page.ask("Network.emulateNetworkConditions", { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
  await page.until(`document.querySelector("#trouble").hidden`, "it is well again");
  found.afterwards = await page.value("document.title");
  found.faults = page.faults.splice(0).filter((fault) => !fault.includes("ERR_INTERNET_DISCONNECTED"));
  return found;
}

async function pictures() {
  await page.view({ ...WIDE, dark: true });
  await page.open(base + "/docs?dark#L1");
  await ask("L1");
  await page.value(`document.querySelector("#L1").scrollIntoView()`);
  await shot("docs-dark");
  await page.view(WIDE);
  await page.open(base + "/docs?light#T8");
  await ask("T8");
  await page.value(`document.querySelector("#T8").scrollIntoView()`);
  await shot("docs-try");
  await page.view(PHONE);
  await page.open(base + "/docs?phone#X2");
  await ask("X2");
  await page.value(`document.querySelector("#X2").scrollIntoView()`);
  await shot("docs-phone");
  for (const [name, view] of [["status", WIDE], ["status-dark", { ...WIDE, dark: true }], ["status-phone", { ...PHONE, dark: true }]]) {
    await page.view(view);
    await page.open(base + "/?" + name);
    await page.until(`document.querySelector(".card h2")`, "a chain is shown");
    await sleep(shots ? 12000 : 0);
    await shot(name);
  }
}

try {
  const found = { docs: await docs(), status: await status() };
  if (shots) await pictures();
  console.log(JSON.stringify(found));
} finally {
  await browser.close();
}
