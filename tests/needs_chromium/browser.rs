//! A Chromium without a window, driven by its DevTools protocol over two pipes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// What an answer takes at most, on a machine that others use.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one page.
pub(super) struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    last: u64,
    /// The page that calls go to.
    session: Option<String>,
    /// What the browser told, in order.
    events: Vec<Value>,
    _home: tempfile::TempDir,
}

impl Browser {
    /// Starts a browser with files of its own, and shows an empty page.
    pub(super) fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        // It reads calls from 3 and writes answers to 4.
        let script = "exec chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
            --disable-background-networking --disable-extensions --hide-scrollbars --user-data-dir=\"$HOME/profile\" \
            --remote-debugging-pipe 3<&0 4>&1 </dev/null >/dev/null 2>\"$HOME/said\"";
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("HOME", home.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (to, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, from) = channel();
        thread::spawn(move || {
            for message in BufReader::new(out).split(0).map_while(Result::ok) {
                if sender.send(serde_json::from_slice(&message).unwrap()).is_err() {
                    return;
                }
            }
        });
        let mut browser = Self { child, to, from, last: 0, session: None, events: Vec::new(), _home: home };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let session = browser.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Shows a file, and waits until its scripts have run.
    pub(super) fn open(&mut self, file: &Path) {
        self.events.clear();
        let url = format!("file://{}", file.canonicalize().unwrap().display());
        self.call("Page.navigate", json!({ "url": url }));
        self.until("the page", |browser| browser.has("Page.loadEventFired"));
    }

    /// The answer to a call.
    pub(super) fn call(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).unwrap();
        loop {
            let answer = self.from.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{method}: {error}"));
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    /// The value of an expression in the page.
    pub(super) fn js(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", params);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// Waits until something is so.
    pub(super) fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < PATIENCE, "waited for {what}");
            thread::sleep(Duration::from_millis(20));
            // Events come with the answers.
            self.js("0");
        }
    }

    fn has(&self, method: &str) -> bool {
        self.events.iter().any(|event| event["method"] == method)
    }

    /// What the page has complained of: exceptions, warnings and errors of its console, and what the browser refused.
    pub(super) fn complaints(&mut self) -> Vec<String> {
        self.js("0");
        let bad = |event: &&Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown" | "Log.entryAdded") => true,
            Some("Runtime.consoleAPICalled") => {
                ["error", "warning", "assert"].iter().any(|kind| event["params"]["type"] == *kind)
            }
            _ => false,
        };
        self.events.iter().filter(bad).map(Value::to_string).collect()
    }

    /// The addresses that the page has asked for.
    pub(super) fn requests(&self) -> Vec<String> {
        let sent = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        sent.filter_map(|event| Some(event["params"]["request"]["url"].as_str()?.to_owned())).collect()
    }

    /// Moves the pointer to a place of the window, or presses and releases its first button there.
    pub(super) fn pointer(&mut self, what: &str, [x, y]: [f64; 2]) {
        let buttons = u8::from(what != "mouseReleased");
        let button = if what == "mouseMoved" { "none" } else { "left" };
        let params = json!({ "type": what, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1 });
        // A pointer that only moves has no button down; within a drag the button of the press counts.
        let moved = json!({ "type": what, "x": x, "y": y, "button": "none" });
        self.call("Input.dispatchMouseEvent", if what == "mouseMoved" { moved } else { params });
    }

    /// The window's width, and what its user prefers.
    pub(super) fn window(&mut self, width: u32, scheme: &str) {
        let metrics = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
        // Two frames: one that sees the new size, one that draws it.
        self.js("new Promise((done) => requestAnimationFrame(() => setTimeout(() => requestAnimationFrame(() => done(0)), 150)))");
    }

    /// The screen of a phone, which is touched and has no pointer.
    pub(super) fn phone(&mut self, width: u32) {
        let metrics = json!({ "width": width, "height": 900, "deviceScaleFactor": 2, "mobile": true });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        self.call("Emulation.setTouchEmulationEnabled", json!({ "enabled": true, "maxTouchPoints": 1 }));
    }

    /// Touches a place of the screen for a moment.
    pub(super) fn tap(&mut self, [x, y]: [f64; 2]) {
        self.call("Input.dispatchTouchEvent", json!({ "type": "touchStart", "touchPoints": [{ "x": x, "y": y }] }));
        self.call("Input.dispatchTouchEvent", json!({ "type": "touchEnd", "touchPoints": [] }));
    }

    /// The whole page as a PNG, in base64.
    pub(super) fn screenshot(&mut self) -> String {
        let params = json!({ "format": "png", "captureBeyondViewport": true });
        self.call("Page.captureScreenshot", params)["data"].as_str().unwrap().to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its children end with it.
        let _ = self.to.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let begun = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && begun.elapsed() < Duration::from_secs(5) {
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
