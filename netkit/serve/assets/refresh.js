// Ask for this page again and take over what has changed, so that nothing flashes, folds up or scrolls away.
(() => {
  "use strict";
  const EVERY_MS = 15_000, LONGEST_MS = 20_000;
  const note = document.getElementById("unrefreshed");
  let timer = 0, since = new Date();

  function morph(mine, fresh) {
    if (mine.nodeType !== Node.ELEMENT_NODE) {
      if (mine.data !== fresh.data) mine.data = fresh.data;
      return;
    }
    const isKept = (name) => name === "open" && mine.localName === "details"; // what a reader has unfolded stays so
    for (const { name } of [...mine.attributes]) if (!fresh.hasAttribute(name) && !isKept(name)) mine.removeAttribute(name);
    for (const { name, value } of fresh.attributes) if (mine.getAttribute(name) !== value && !isKept(name)) mine.setAttribute(name, value);
    const named = new Map([...mine.children].filter((one) => one.id).map((one) => [one.id, one]));
    let at = mine.firstChild;
    for (const next of [...fresh.childNodes]) {
      const isAlike = at && at.nodeName === next.nodeName && !at.id && !next.id;
      const found = next.id ? named.get(next.id) : isAlike ? at : undefined;
      if (!found) {
        mine.insertBefore(document.importNode(next, true), at);
        continue;
      }
      if (found === at) at = at.nextSibling;
      else mine.insertBefore(found, at);
      morph(found, next);
    }
    while (at) {
      const over = at;
      at = at.nextSibling;
      over.remove();
    }
  }

  /** Return the element at the top of the window, unless that is the beginning of the page. */
  function anchor() {
    if (!scrollY) return null;
    return [...document.querySelectorAll("#main [id]")].find((one) => one.getClientRects().length && one.getBoundingClientRect().top >= 0);
  }

  function takeOver(fresh) {
    const held = anchor();
    const before = held?.getBoundingClientRect().top;
    morph(document.getElementById("main"), fresh.getElementById("main"));
    if (held?.isConnected) scrollBy({ top: held.getBoundingClientRect().top - before, behavior: "instant" });
    document.title = fresh.title;
  }

  async function refresh() {
    clearTimeout(timer);
    try {
      const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(LONGEST_MS) });
      if (answer.redirected) return location.assign(answer.url); // the session is over
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      takeOver(new DOMParser().parseFromString(await answer.text(), "text/html"));
      since = new Date();
      note.hidden = true;
    } catch (error) {
      note.textContent = `Not refreshed since ${since.toISOString().slice(0, 19).replace("T", " ")} UTC, so this may be out of date: ${error.message}`;
      note.hidden = false;
    }
    timer = setTimeout(refresh, EVERY_MS);
  }

  timer = setTimeout(refresh, EVERY_MS);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
})();
