// What the status page makes of answers of /status, without a browser: reads {page, reports} as JSON from standard input,
// runs the page's script once for each report on the little of a document that it touches, and prints what is shown then.
// The test in tests/pages.rs judges it.

import { readFileSync } from "node:fs";
import vm from "node:vm";

class Element {
  constructor(name) {
    Object.assign(this, { name, className: "", hidden: false, dataset: {}, attributes: {}, children: [] });
    this.classList = { add() {}, remove() {} };
  }
  get textContent() {
    return this.children.map((child) => (typeof child === "string" ? child : child.textContent)).join("");
  }
  set textContent(text) {
    this.children = [String(text)];
  }
  append(...more) {
    this.children.push(...more);
  }
  replaceChildren(...more) {
    this.children = more;
  }
  setAttribute(name, value) {
    this.attributes[name] = value;
  }
  addEventListener() {}
  // Every element of that name below, in their order.
  all(name) {
    const below = this.children.filter((child) => typeof child !== "string");
    return below.flatMap((child) => [...(child.name === name ? [child] : []), ...child.all(name)]);
  }
}

async function shown(page, report) {
  const places = new Map();
  const document = {
    hidden: false,
    title: "",
    addEventListener() {},
    createElement: (name) => new Element(name),
    querySelector(selector) {
      if (!places.has(selector)) places.set(selector, new Element("div"));
      return places.get(selector);
    },
  };
  document.querySelector("#service").dataset.operations = page.match(/ data-operations="([^"]*)"/)[1];
  const fetch = async () => ({ ok: true, status: 200, json: async () => structuredClone(report) });
  const script = page.match(/<script>([^]*)<\/script>/)[1];
  vm.runInNewContext(script, { document, fetch, AbortController, setTimeout: () => 0, clearTimeout() {} });
  // Until all that waits for the answer has gone on.
  await new Promise((resolve) => setTimeout(resolve, 20));
  const chains = document.querySelector("#chains").children.map((card) => {
    const [pill] = card.all("span");
    const names = card.all("dt").map((one) => one.textContent);
    const values = card.all("dd").map((one) => one.textContent);
    return { pill: [pill.textContent, pill.className], facts: Object.fromEntries(names.map((name, place) => [name, values[place]])) };
  });
  const links = document.querySelector("#operations").all("tr").map((row) => [row.children[0].textContent, row.all("a").map((link) => link.href)]);
  return { title: document.title, trouble: document.querySelector("#trouble").textContent, chains, links };
}

const { page, reports } = JSON.parse(readFileSync(0, "utf8"));
const found = [];
for (const report of reports) found.push(await shown(page, report));
console.log(JSON.stringify(found));
