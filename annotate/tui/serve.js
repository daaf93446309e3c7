// In the head of textual-serve's page, before its own script.
// That script shows its logo until the first output, for ever if there is none.
window.WebSocket = class extends WebSocket {
  constructor(...given) {
    super(...given);
    this.addEventListener("close", (event) => {
      if (event.code === 4409) { window.location.replace("/busy"); }
    });
  }
};
// The terminal takes keys once it has the focus; without this, only after a click.
const focusing = setInterval(() => {
  const area = document.querySelector(".xterm-helper-textarea");
  if (area) { area.focus(); }
  if (area && document.activeElement === area && document.body.classList.contains("-first-byte")) { clearInterval(focusing); }
}, 100);
