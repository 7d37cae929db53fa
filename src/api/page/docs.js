"use strict";
// Forms that ask the service and show what it answers. Nothing of an answer is ever put in as HTML.
(() => {
  const KEPT = 200000; // characters of an answer that are shown
  const READ_MAX = 64 << 20; // bytes that are read at most
  const COLOURED = 12000; // pieces of text that get a colour
  const DEMO_CHAIN = 31337;
  const HEADERS = [
    "content-type", "x-indexed-block-number", "x-indexed-block-hash", "x-finalized-block-number", "x-total-count", "link",
    "etag", "cache-control", "retry-after", "allow", "x-balance-source", "x-nonce-source", "content-encoding", "x-request-id",
  ];
  const find = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const make = (name, text, kind) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (kind) element.className = kind;
    return element;
  };
  const operations = all("details.op");
  const forms = new Map();

  // ---- requests ----

  // What a form asks for: its path and query, and the path's empty placeholders.
  function request(form) {
    const absent = [];
    const pairs = [];
    let path = form.dataset.path;
    let accept = "application/json";
    for (const field of form.elements) {
      const value = field.value === undefined ? "" : field.value.trim();
      if (field.dataset.place === "path") {
        if (value === "") absent.push(field);
        path = path.replace("{" + field.dataset.name + "}", () => encodeURIComponent(value));
      } else if (field.dataset.place === "query" && value !== "") {
        pairs.push(encodeURIComponent(field.dataset.name) + "=" + encodeURIComponent(value).replace(/%2C/g, ","));
      } else if (field.dataset.place === "accept" && value !== "") {
        accept = value;
      }
    }
    return { target: path + (pairs.length ? "?" + pairs.join("&") : ""), accept, absent };
  }

  function curl(form) {
    const { target, accept } = request(form);
    const quoted = (text) => "'" + text.replace(/'/g, "'\\''") + "'";
    const header = accept === "application/json" ? "" : "-H " + quoted("accept: " + accept) + " ";
    return "curl " + header + quoted(location.origin + target);
  }

  function describe(form) {
    const parts = forms.get(form);
    parts.curl.textContent = curl(form);
    parts.open.href = request(form).target;
  }

  async function send(form) {
    const parts = forms.get(form);
    const { target, accept, absent } = request(form);
    for (const field of form.elements) field.closest(".row")?.classList.toggle("odd", absent.includes(field));
    if (absent.length) {
      absent[0].focus();
      begin(parts);
      parts.status.textContent = absent.map((field) => field.dataset.name).join(", ") + ": part of the path, needs a value";
      parts.status.className = "status bad";
      return;
    }
    parts.controller?.abort();
    const controller = new AbortController();
    parts.controller = controller;
    begin(parts);
    parts.result.setAttribute("aria-busy", "true");
    parts.stop.hidden = false;
    const started = performance.now();
    const seconds = () => {
      const ms = performance.now() - started;
      return ms < 1000 ? ms.toFixed(1) + " ms" : (ms / 1000).toFixed(2) + " s";
    };
    parts.status.textContent = "asking";
    const answer = { text: "", bytes: 0, whole: true };
    let response = null;
    try {
      response = await fetch(target, {
        headers: { accept }, signal: controller.signal, cache: "no-store", credentials: "omit", redirect: "error",
      });
      parts.status.textContent = response.status + " " + response.statusText;
      parts.status.className = "status " + (response.ok ? "good" : "bad");
      parts.time.textContent = "answered after " + seconds();
      showHeaders(parts, response);
      await read(response, answer, () => { parts.size.textContent = size(answer.bytes) + " so far"; });
      parts.time.textContent = seconds();
      parts.size.textContent = size(answer.bytes) + (answer.whole ? "" : " read");
      show(parts, response, answer, target);
    } catch (error) {
      if (parts.controller !== controller) return;
      parts.time.textContent = seconds();
      const stopped = controller.signal.aborted;
      const words = stopped ? "stopped" : response ? "the answer was broken off" : "the service did not answer";
      parts.status.textContent = (response ? response.status + " " : "") + words + (stopped ? "" : ": " + error.message);
      parts.status.className = "status " + (stopped ? "warn" : "bad");
      if (response) show(parts, response, { ...answer, whole: false }, target);
    } finally {
      if (parts.controller === controller) {
        parts.controller = null;
        parts.stop.hidden = true;
        parts.result.removeAttribute("aria-busy");
        parts.result.dataset.done = String(Number(parts.result.dataset.done || 0) + 1);
      }
    }
  }

  function begin(parts) {
    parts.result.hidden = false;
    parts.status.className = "status";
    for (const part of [parts.status, parts.time, parts.size, parts.note, parts.body]) part.textContent = "";
    parts.headers.replaceChildren();
    parts.next.hidden = parts.note.hidden = true;
  }

  // Reads to the end, keeps the beginning.
  async function read(response, answer, progress) {
    if (!response.body) return;
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    let told = performance.now();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      answer.bytes += value.length;
      if (answer.text.length <= KEPT) answer.text += decoder.decode(value, { stream: true });
      if (performance.now() - told > 200) {
        told = performance.now();
        progress();
      }
      if (answer.bytes > READ_MAX) {
        answer.whole = false;
        await reader.cancel();
        break;
      }
    }
  }

  function showHeaders(parts, response) {
    for (const name of HEADERS) {
      const value = response.headers.get(name);
      if (value === null) continue;
      const row = make("tr");
      row.append(make("td", name, "soft"), make("td", value, "mono"));
      parts.headers.append(row);
    }
    const link = /<([^>]*)>;\s*rel="next"/.exec(response.headers.get("link") || "");
    const next = link && new URL(link[1], location.href);
    parts.next.hidden = !(next && next.origin === location.origin);
    parts.next.dataset.query = next ? next.search : "";
  }

  function show(parts, response, answer, target) {
    const cut = answer.text.length > KEPT;
    const text = cut ? answer.text.slice(0, KEPT) : answer.text;
    const json = (response.headers.get("content-type") || "").startsWith("application/json");
    parts.body.replaceChildren(json ? pretty(text) : document.createTextNode(text));
    parts.note.hidden = !cut && answer.whole;
    if (cut || !answer.whole) {
      parts.note.textContent = "Only the beginning is shown" + (answer.whole ? "" : ", the rest was not read") + ". ";
      const link = make("a", "Open the whole answer");
      Object.assign(link, { href: target, target: "_blank", rel: "noopener" });
      parts.note.append(link);
    }
  }

  // JSON with line ends and colours. It is not parsed: numbers stay as they are written, and an answer that is cut off
  // is shown as far as it goes.
  function pretty(text) {
    const out = document.createDocumentFragment();
    let plain = "";
    let depth = 0;
    let pieces = 0;
    const put = (piece, kind) => {
      if (!kind || ++pieces > COLOURED) {
        plain += piece;
        return;
      }
      if (plain) out.append(plain);
      plain = "";
      out.append(make("span", piece, kind));
    };
    const line = () => { plain += "\n" + "  ".repeat(Math.min(depth, 40)); };
    const blank = /[\s]*/y;
    const skip = (at) => { blank.lastIndex = at; blank.exec(text); return blank.lastIndex; };
    const bare = /[^\s,:{}[\]"]+/y;
    for (let at = skip(0); at < text.length; at = skip(at)) {
      const sign = text[at];
      if (sign === '"') {
        let end = at + 1;
        while (end < text.length && text[end] !== '"') end += text[end] === "\\" ? 2 : 1;
        end = Math.min(end + 1, text.length);
        put(text.slice(at, end), text[skip(end)] === ":" ? "k" : "s");
        at = end;
      } else if (sign === "{" || sign === "[") {
        const next = skip(at + 1);
        if (text[next] === "}" || text[next] === "]") {
          put(sign + text[next]);
          at = next + 1;
        } else {
          put(sign);
          depth += 1;
          line();
          at += 1;
        }
      } else if (sign === "}" || sign === "]") {
        depth = Math.max(0, depth - 1);
        line();
        put(sign);
        at += 1;
      } else if (sign === "," || sign === ":") {
        put(sign);
        if (sign === ",") line();
        else plain += " ";
        at += 1;
      } else {
        bare.lastIndex = at;
        const word = bare.exec(text)[0];
        put(word, "w");
        at += word.length;
      }
    }
    if (plain) out.append(plain);
    return out;
  }

  function size(bytes) {
    if (bytes < 1000) return bytes + " bytes";
    return bytes < 1e6 ? (bytes / 1e3).toFixed(1) + " kB" : (bytes / 1e6).toFixed(1) + " MB";
  }

  async function copy(text, button) {
    let done = false;
    try {
      await navigator.clipboard.writeText(text);
      done = true;
    } catch (_) {
      // Pages of other machines without TLS have no clipboard: by a selection then.
      const area = make("textarea", text);
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
      button.focus();
    }
    const label = button.dataset.label || button.textContent;
    button.dataset.label = label;
    button.textContent = done ? "Copied" : "Not copied";
    setTimeout(() => { button.textContent = label; }, 1500);
  }

  function fill(form, query) {
    for (const [name, value] of new URLSearchParams(query)) {
      const field = [...form.elements].find((one) => one.dataset.name === name);
      if (field) field.value = value;
    }
    describe(form);
  }

  for (const form of all("form.try")) {
    form.append(find("#tools").content.cloneNode(true));
    const part = (name) => find("." + name, form);
    forms.set(form, {
      result: part("result"), status: part("status"), time: part("time"), size: part("size"), headers: part("headers"),
      note: part("note"), body: find("pre", form), next: part("next"), curl: find(".curl code", form), open: part("open"),
      stop: part("stop"), controller: null,
    });
    form.addEventListener("input", () => describe(form));
    form.addEventListener("submit", (event) => { event.preventDefault(); send(form); });
    form.addEventListener("reset", () => setTimeout(() => describe(form)));
    part("stop").addEventListener("click", () => forms.get(form).controller?.abort());
    part("clear").addEventListener("click", () => {
      for (const field of form.elements) if (field.dataset.place && !field.readOnly) field.value = "";
      describe(form);
    });
    part("copy").addEventListener("click", (event) => copy(curl(form), event.target));
    part("next").addEventListener("click", (event) => { fill(form, event.target.dataset.query); send(form); });
    part("link").addEventListener("click", (event) => {
      const values = new URLSearchParams();
      for (const field of form.elements) if (field.dataset.place && field.value) values.append(field.dataset.name, field.value);
      const hash = "#" + form.closest("details").id + "?" + values;
      history.replaceState(null, "", hash);
      copy(location.href, event.target);
    });
    describe(form);
  }

  // ---- finding one's way ----

  const search = find("#search");
  const links = all("#side li a");
  const side = find("#side");
  const menu = find("#menu");
  const texts = operations.map((operation) => {
    const names = all("form.try [data-name]", operation).map((field) => field.dataset.name);
    return (find("summary", operation).textContent + " " + names.join(" ")).toLowerCase();
  });

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    operations.forEach((operation, place) => {
      const fits = words.every((word) => texts[place].includes(word));
      operation.hidden = !fits;
      const link = links.find((one) => one.hash === "#" + operation.id);
      if (link) link.parentElement.hidden = !fits;
      count += fits ? 1 : 0;
    });
    // Operations and links alone: what is inside of a hidden operation is not hidden itself.
    for (const group of all("main > section")) group.hidden = !find("details.op:not([hidden])", group);
    for (const group of all("#side section")) group.hidden = !find("li:not([hidden])", group);
    find("#found").textContent = words.length ? count + " of " + operations.length + " operations" : "";
  }

  function go() {
    const [name, query] = split(location.hash.slice(1));
    const place = name && document.getElementById(name);
    const operation = place && place.closest("details.op");
    for (const link of links) {
      if (operation && link.hash === "#" + operation.id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    if (!operation) return;
    if (operation.hidden) {
      search.value = "";
      filter();
    }
    operation.open = true;
    const form = find("form.try", operation);
    if (query) fill(form, query);
    operation.scrollIntoView({ block: "start" });
  }

  function split(hash) {
    const at = hash.indexOf("?");
    const name = at < 0 ? hash : hash.slice(0, at);
    try {
      return [decodeURIComponent(name), at < 0 ? "" : hash.slice(at + 1)];
    } catch (_) {
      return ["", ""];
    }
  }

  function showMenu(open) {
    side.classList.toggle("open", open);
    menu.setAttribute("aria-expanded", String(open));
  }

  search.addEventListener("input", filter);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      search.value = "";
      filter();
    } else if (event.key === "Enter") {
      const first = operations.find((operation) => !operation.hidden);
      if (!first) return;
      event.preventDefault();
      showMenu(false);
      location.hash = first.id;
      go();
      find("summary", first).focus();
    }
  });
  document.addEventListener("keydown", (event) => {
    const writing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "/" && !writing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      showMenu(true);
      search.focus();
      search.select();
    }
  });
  menu.addEventListener("click", () => showMenu(!side.classList.contains("open")));
  for (const link of links) {
    link.addEventListener("click", () => {
      showMenu(false);
      if (link.hash === location.hash) go();
    });
  }
  for (const operation of operations) {
    find("summary", operation).addEventListener("click", () => {
      if (!operation.open) history.replaceState(null, "", "#" + operation.id);
    });
  }
  addEventListener("hashchange", go);

  // ---- the chains that are served ----

  async function chains() {
    const response = await fetch("/status", { headers: { accept: "application/json" }, cache: "no-store" });
    const served = (await response.json()).chains;
    const names = Object.keys(served);
    const told = names.map((name) => {
      const chain = served[name];
      return name + ": chain " + (chain.chainId ?? "unknown") + (chain.indexed === null ? "" : ", block " + chain.indexed);
    });
    find("#chains").textContent = told.join(" \u00b7 ") || "no chain is configured";
    find("#not-demo").hidden = names.some((name) => served[name].chainId === DEMO_CHAIN);
    if (!names.length) return;
    for (const select of all("select[data-name=chain]")) {
      for (const option of select.options) {
        const name = option.value || "mainnet";
        if (!names.includes(name)) option.textContent += " (not configured)";
      }
      // Where mainnet is not served, the other one is what is meant.
      const other = [...select.options].find((option) => names.includes(option.value || "mainnet"));
      if (!names.includes("mainnet") && other) {
        other.defaultSelected = true;
        select.value = other.value;
        describe(select.form);
      }
    }
  }

  chains().catch(() => { find("#chains").textContent = "the service does not answer"; });
  go();
})();
