// A page that is opened as a file may not start a worker. The search then runs in a hidden frame instead, which
// is given the two functions that a worker has.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.inside = new Promise((resolve, reject) => {
        frame.onload = () => {
          const { contentWindow, contentDocument } = frame;
          contentWindow.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          const script = contentDocument.createElement("script");
          script.src = url;
          script.onload = () => resolve(contentWindow);
          script.onerror = reject;
          contentDocument.body.append(script);
        };
      });
      document.body.append(frame);
    }
    async postMessage(data) {
      const inside = await this.inside;
      inside.dispatchEvent(new MessageEvent("message", { data }));
    }
  };
  window.Worker = window.IFrameWorker;
}
