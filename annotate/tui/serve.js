// This runs in the head of textual-serve's page, before its own script.
// Until the first output, that script shows a logo. If there is no output, the logo would stay forever.
window.WebSocket = class extends WebSocket {
  constructor(...given) {
    super(...given);
    this.addEventListener("close", (event) => {
      if (event.code === 4409) { window.location.replace("/busy"); }
    });
  }
};
// The terminal receives keys only if it has the focus. Without this code, the user would have to click first.
const focusing = setInterval(() => {
  const area = document.querySelector(".xterm-helper-textarea");
  if (area) { area.focus(); }
  if (area && document.activeElement === area && document.body.classList.contains("-first-byte")) { clearInterval(focusing); }
}, 100);
