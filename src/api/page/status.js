"use strict";
// Asks /status every few seconds and shows it. Everything of an answer is put in as text.
(() => {
  const EVERY_MS = 5000;
  const PATIENCE_MS = 8000;
  const POINTS = 240; // twenty minutes
  const find = (selector) => document.querySelector(selector);
  const make = (name, text, kind) => {
    const element = document.createElement(name);
    if (text !== undefined && text !== null) element.textContent = text;
    if (kind) element.className = kind;
    return element;
  };
  // Fields of a chain that have a place of their own; any other is shown by its name.
  const KNOWN = new Set([
    "chainId", "nodeHead", "indexed", "indexedHash", "finalized", "lag", "rate", "etaSeconds", "verified", "trusted",
    "storeBytes", "traces", "nodeUp", "following", "message", "diskFull", "stopped", "reorgs", "verificationFailures", "tokens",
    "replica", "nativeLedger", "withheld",
  ]);
  // As long as /ready allows; and as a writer may be silent, which says something twice a second.
  const UNSEEN_MAX = 10;
  const SILENCE_MAX = 5;
  // The names that /docs has.
  const DOCUMENTED = new Set(find("#service").dataset.operations.split(" "));
  const state = { report: null, heard: 0, since: 0, order: "latest", points: [], before: null, timer: 0 };

  // ---- words ----

  const whole = (number) => (number === null || number === undefined ? "\u2013" : number.toLocaleString("en"));
  const rate = (number) => number.toLocaleString("en", { maximumFractionDigits: number < 10 ? 2 : 0 });
  const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB");

  function bytes(number) {
    if (number === null || number === undefined) return "\u2013";
    const units = ["bytes", "kB", "MB", "GB", "TB"];
    let place = 0;
    while (number >= 1000 && place < units.length - 1) {
      number /= 1000;
      place += 1;
    }
    return number.toLocaleString("en", { maximumFractionDigits: place ? 1 : 0 }) + " " + units[place];
  }

  function span(seconds) {
    if (seconds === null || seconds === undefined) return "\u2013";
    const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
    const first = parts.findIndex(([length]) => seconds >= length);
    if (first < 0) return "0 s";
    const said = [];
    for (const [length, unit] of parts.slice(first, first + 2)) {
      const count = Math.floor(seconds / length);
      seconds -= count * length;
      if (count || !said.length) said.push(count + " " + unit);
    }
    return said.join(" ");
  }

  function time(ms) {
    return ms < 1000 ? ms.toLocaleString("en", { maximumFractionDigits: ms < 10 ? 2 : 0 }) + " ms" : (ms / 1000).toFixed(2) + " s";
  }

  // ---- chains ----

  // Nothing syncs it, and it follows nobody: there is no news of a node.
  const isStored = (chain) => chain.tokens === null && chain.replica === null;
  const isUnseen = (replica) => replica.seenSecondsAgo > UNSEEN_MAX;
  const isUnwritten = (replica) => replica.writerSecondsAgo === null || replica.writerSecondsAgo > SILENCE_MAX;

  // In a word or two how a chain is, and how much that matters.
  function judge(chain) {
    if (chain.stopped) return ["sync stopped", "bad"];
    if (chain.diskFull) return ["disk full", "bad"];
    if (isStored(chain)) return ["served as stored", "good"];
    if (chain.replica && isUnseen(chain.replica)) return ["not following", "bad"];
    if (chain.replica && isUnwritten(chain.replica)) return [chain.replica.writerSecondsAgo === null ? "no writer" : "writer gone", "warn"];
    if (!chain.nodeUp) return ["node down", "bad"];
    if (chain.indexed === null) return ["nothing indexed yet", "warn"];
    if (chain.lag !== null && chain.lag > 5) return [chain.following ? "behind" : "filling", "warn"];
    return ["at the head", "good"];
  }

  function fact(list, name, value, small, kind) {
    const shown = make("dd", value, kind);
    if (small) shown.append(make("small", small));
    const pair = make("div");
    pair.append(make("dt", name), shown);
    list.append(pair);
  }

  const blocks = (count) => whole(count) + (count === 1 ? " block" : " blocks");

  // What is heard of the node: by a replica, from its writer.
  function showNode(facts, chain) {
    const [head, lag] = ["Node's head", chain.lag === null ? "\u2013" : blocks(chain.lag)];
    if (chain.replica && isUnwritten(chain.replica)) fact(facts, head, whole(chain.nodeHead), "nobody asks the node", "warn");
    else fact(facts, head, whole(chain.nodeHead), chain.nodeUp ? "the node answers" : "the node does not answer", chain.nodeUp ? "" : "bad");
    fact(facts, "Behind", lag, "", chain.lag > 5 ? "warn" : "");
  }

  function showChain(name, chain) {
    const card = make("section", null, "card");
    const [word, kind] = judge(chain);
    const title = make("h2", name);
    title.append(make("span", word, "pill " + kind));
    if (chain.chainId !== null) title.append(make("small", "chain id " + chain.chainId, "soft"));
    card.append(title);
    if (chain.message) card.append(make("p", chain.message, "sentence" + (kind === "bad" ? " bad" : "")));
    const stored = chain.verified.concat(chain.trusted).map((range) => range.from);
    const first = stored.length ? Math.min(...stored) : 0;
    if (chain.nodeHead !== null && chain.indexed !== null && chain.nodeHead >= first) {
      const bar = make("div", null, "bar");
      const all = Math.max(1, chain.nodeHead - first + 1);
      const done = Math.min(all, Math.max(0, chain.indexed - first + 1));
      const progress = make("progress");
      Object.assign(progress, { max: all, value: done });
      progress.setAttribute("aria-label", "Blocks of " + name + " that are indexed");
      // Not "100 %" before the last block.
      const percent = done === all ? "100 %" : Math.min(99.99, Math.floor((done / all) * 10000) / 100).toFixed(2) + " %";
      bar.append(progress, make("span", percent));
      card.append(bar);
    }
    const facts = make("dl", null, "facts");
    fact(facts, "Indexed", whole(chain.indexed), chain.indexedHash ? chain.indexedHash.slice(0, 18) + "\u2026" : "");
    const replica = chain.replica;
    if (isStored(chain)) fact(facts, "Node", "none", "nothing is synced");
    else showNode(facts, chain);
    if (replica) {
      const unseen = isUnseen(replica);
      fact(facts, "Replica", "seen " + span(replica.seenSecondsAgo) + " ago", unseen ? "news of the store is not read" : "all that was on the disk then", unseen ? "bad" : "");
      const heard = replica.writerSecondsAgo === null ? "never heard" : "heard " + span(replica.writerSecondsAgo) + " ago";
      const behind = replica.behind === null ? "" : "has block " + whole(replica.writerIndexed) + ", " + blocks(replica.behind) + " more";
      fact(facts, "Writer", heard, behind, isUnwritten(replica) ? "warn" : "");
    } else if (!isStored(chain)) {
      fact(facts, "Rate", rate(chain.rate) + " blocks/s", chain.following ? "follows the head" : "");
      fact(facts, "Time left", chain.lag || chain.etaSeconds ? span(chain.etaSeconds) : "\u2013", chain.etaSeconds ? "at this rate" : "");
    }
    const ranges = (of) => of.map((range) => whole(range.from) + " to " + whole(range.to)).join(", ") || "none";
    fact(facts, "Verified blocks", ranges(chain.verified));
    if (chain.trusted.length) fact(facts, "Blocks at the node's word", ranges(chain.trusted), "unverified (--trust-node)", "warn");
    fact(facts, "Final", whole(chain.finalized), chain.finalized !== null && chain.indexed !== null ? (chain.indexed > chain.finalized ? whole(chain.indexed - chain.finalized) + " above it may still change" : "all that is indexed") : "");
    fact(facts, "Reorganisations", whole(chain.reorgs), "since the start");
    fact(facts, "Blocks refused", whole(chain.verificationFailures), "that did not verify", chain.verificationFailures ? "bad" : "");
    fact(facts, "Store", bytes(chain.storeBytes));
    const isKnown = chain.chainId !== null;
    if (isKnown) fact(facts, "Traces", chain.traces ? "of every block" : "not stored", "", chain.traces ? "" : "warn");
    const kept = chain.nativeLedger === "kept";
    if (isKnown) fact(facts, "Ledger of the native coin", kept ? "kept" : "not kept", kept ? "" : chain.nativeLedger, kept ? "" : "warn");
    if (chain.tokens) {
      const tokens = chain.tokens;
      fact(facts, "Tokens", whole(tokens.known), whole(tokens.exact) + " exact, " + whole(tokens.notExact) + " asked of the node, " + whole(tokens.waiting) + " waiting");
      fact(facts, "Questions about tokens", whole(tokens.questions), whole(tokens.errors) + " not answered", tokens.errors ? "warn" : "");
    }
    for (const [field, value] of Object.entries(chain)) {
      if (KNOWN.has(field) || value === null) continue;
      fact(facts, field, typeof value === "object" ? JSON.stringify(value) : String(value));
    }
    card.append(facts);
    if (chain.withheld.length) {
      card.append(make("h3", "Not answered by this store"));
      const list = make("ul", null, "withheld");
      for (const one of chain.withheld) list.append(make("li", one.operations + ": " + one.because));
      card.append(list);
    }
    return card;
  }

  // ---- the service ----

  function cells(row, texts) {
    for (const [text, kind] of texts) row.append(make("td", text, kind));
    return row;
  }

  function operation(name) {
    const cell = make("td");
    const names = name.split(",");
    const known = names.find((one) => DOCUMENTED.has(one));
    const text = make(known ? "a" : "span", names.join(", "));
    if (known) text.href = "/docs#" + encodeURIComponent(known);
    cell.append(text);
    return cell;
  }

  function showService(report) {
    const requests = report.requests;
    const facts = make("dl", null, "facts");
    fact(facts, "Requests a second", rate(requests.perSecond1m), "over one minute; " + rate(requests.perSecond5m) + " over five");
    fact(facts, "Failures a second", rate(requests.failedPerSecond1m), "over one minute; " + rate(requests.failedPerSecond5m) + " over five", requests.failedPerSecond1m ? "bad" : "");
    fact(facts, "Answered", whole(requests.answered), whole(requests.failed) + " with a status of 500 or above");
    fact(facts, "Under way", whole(requests.underway), whole(requests.connections) + " connections");
    fact(facts, "Memory", bytes(report.memoryBytes), "mapped files included");
    fact(facts, "Running", span(report.uptimeSeconds), "version " + report.version);
    find("#facts").replaceChildren(...facts.children);
    const lines = requests.byOperation.map((one) => {
      const row = make("tr");
      row.append(operation(one.operation));
      return cells(row, [
        [whole(one.answered), "number"], [whole(one.failed), one.failed ? "number bad" : "number"],
        [time(one.meanMs), "number"], [time(one.medianMs), "number"], [time(one.p99Ms), "number"],
      ]);
    });
    find("#operations").replaceChildren(...lines);
    showSlow();
    find("#service").hidden = false;
  }

  function showSlow() {
    const slow = state.report.slow;
    find("#slow").textContent = whole(slow.count) + " took " + slow.overMs + " ms or longer";
    const shown = slow[state.order];
    find("#none").hidden = shown.length > 0;
    find("#slow-table").hidden = shown.length === 0;
    const lines = shown.map((one) => {
      const row = make("tr");
      row.append(make("td", new Date(one.at * 1000).toLocaleString("en-GB")), operation(one.operation));
      const took = time(one.ms) + (one.wholeMs > one.ms + 1 ? " of " + time(one.wholeMs) : "");
      return cells(row, [
        [one.request, "target mono"], [one.status, one.status >= 500 ? "number bad" : "number"],
        [took, "number"], [bytes(one.bytes), "number"],
      ]);
    });
    find("#slow-lines").replaceChildren(...lines);
    for (const order of ["latest", "longest"]) find("#" + order).setAttribute("aria-pressed", String(order === state.order));
  }

  // Requests a second between two looks, this page's own included.
  function showLine(report, now) {
    const before = state.before;
    state.before = { now, answered: report.requests.answered, uptime: report.uptimeSeconds };
    if (before && report.uptimeSeconds >= before.uptime && now > before.now) {
      const lately = ((report.requests.answered - before.answered) * 1000) / (now - before.now);
      state.points = [...state.points, Math.max(0, lately)].slice(-POINTS);
    }
    const points = state.points;
    const highest = Math.max(1, ...points);
    find("#peak").textContent = points.length ? "highest: " + rate(Math.max(...points)) : "measuring";
    const step = 300 / Math.max(1, Math.max(24, points.length) - 1);
    const place = (value, at) => (at * step).toFixed(1) + "," + (58 - (value / highest) * 55).toFixed(1);
    find("#line").setAttribute("points", points.map(place).join(" "));
  }

  // ---- asking ----

  async function look() {
    const controller = new AbortController();
    const limit = setTimeout(() => controller.abort(), PATIENCE_MS);
    try {
      const response = await fetch("/status", { signal: controller.signal, cache: "no-store", headers: { accept: "application/json" } });
      const report = await response.json();
      if (!response.ok) throw new Error(response.status + " " + (report.error || response.statusText));
      const now = Date.now();
      Object.assign(state, { report, heard: now, since: 0 });
      const cards = Object.entries(report.chains).map(([name, chain]) => showChain(name, chain));
      find("#chains").replaceChildren(...(cards.length ? cards : [make("p", "No chain is configured.", "note")]));
      showService(report);
      showLine(report, now);
      good();
    } catch (error) {
      trouble(controller.signal.aborted ? "no answer within " + PATIENCE_MS / 1000 + " s" : error.message);
    } finally {
      clearTimeout(limit);
    }
  }

  function good() {
    find("#trouble").hidden = true;
    find("#main").classList.remove("old");
    const names = Object.entries(state.report.chains).map(([name, chain]) => name + " " + judge(chain)[0]);
    document.title = "Quarry: " + (names.join(", ") || "no chain");
    find("#heard").textContent = "as of " + clock(state.heard);
  }

  function trouble(why) {
    state.since = state.since || Date.now();
    const last = state.heard ? " What is shown is from " + clock(state.heard) + "." : "";
    const box = find("#trouble");
    box.textContent = "The service cannot be reached since " + clock(state.since) + " (" + why + ")." + last + " Asking again every " + EVERY_MS / 1000 + " seconds.";
    box.hidden = false;
    find("#main").classList.add("old");
    document.title = "Quarry: cannot be reached";
    find("#heard").textContent = "";
    state.before = null;
  }

  async function run() {
    clearTimeout(state.timer);
    // Nobody looks at a hidden page.
    if (!document.hidden) await look();
    clearTimeout(state.timer);
    state.timer = setTimeout(run, EVERY_MS);
  }

  for (const order of ["latest", "longest"]) {
    find("#" + order).addEventListener("click", () => {
      state.order = order;
      if (state.report) showSlow();
    });
  }
  document.addEventListener("visibilitychange", () => { if (!document.hidden) run(); });
  run();
})();
