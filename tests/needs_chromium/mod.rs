//! The report in a browser: what it draws, what it says under the pointer, and how it looks.

mod browser;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::{Value, json};

use self::browser::Browser;
use crate::docs::pages::root;
use crate::program::{err, tune};

/// A session on four simulated nodes, one of them slow, that is long enough to judge dimensions.
fn simulated() -> &'static Path {
    static DONE: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, folder) = DONE.get_or_init(|| {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("evening");
        let cluster = root().join("datasets/simulated/four-nodes.toml");
        let words =
            ["--budget", "1h", "--quiet", "--simulate", cluster.to_str().unwrap(), "--out", folder.to_str().unwrap()];
        let output = tune(words);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        (home, folder)
    });
    folder
}

/// A text that ends a script, is markup for HTML and for plotly.js, and a place of a template.
const HOSTILE: &str = "</script><script>window.broken = 1</script><!-- <b>%{x}</b> <img src=x onerror=window.broken=1>";

/// The report of a session on four simulated nodes whose texts were all changed to [`HOSTILE`].
fn hostile() -> &'static Path {
    static DONE: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, page) = DONE.get_or_init(|| {
        let home = tempfile::tempdir().unwrap();
        for name in ["session.toml", "journal.jsonl", "machine.toml", "simulated.toml", "simulated.clock.json"] {
            fs::copy(simulated().join(name), home.path().join(name)).unwrap();
        }
        let path = home.path().join("journal.jsonl");
        let changed = |line: &str| {
            let mut row: Value = serde_json::from_str(line).unwrap();
            row["why"] = json!(HOSTILE);
            row["extra"] = json!(json!({ HOSTILE: HOSTILE }).to_string());
            row["failure_detail"] = if row["passed"] == true { Value::Null } else { json!(HOSTILE) };
            row.to_string() + "\n"
        };
        let journal: String = fs::read_to_string(&path).unwrap().lines().map(changed).collect();
        fs::write(&path, journal).unwrap();
        let output = tune(["report", home.path().to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        let page = home.path().join("report.html");
        (home, page)
    });
    page
}

/// Where the `at`-th point of a trace lies in the window, or the middle of a bar that lies; the last one is −1.
fn place_of(browser: &mut Browser, what: &str, trace: &str, at: i64) -> [f64; 2] {
    let place = browser.js(&format!(
        "(() => {{
            const element = document.getElementById('{what}');
            element.scrollIntoView({{ block: 'center' }});
            const {{ left, top }} = element.getBoundingClientRect();
            const {{ xaxis, yaxis }} = element._fullLayout;
            const trace = element.data.find((one) => one.name === '{trace}');
            const [base, x, y] = [trace.base ?? [], trace.x, trace.y].map((values) => values.at({at}));
            const middle = trace.orientation === 'h' ? (base ?? 0) + x / 2 : x;
            return [left + xaxis._offset + xaxis.d2p(middle), top + yaxis._offset + yaxis.d2p(y)];
        }})()"
    ));
    [0, 1].map(|axis| place[axis].as_f64().unwrap_or_else(|| panic!("{what}, {trace}: {place}")))
}

/// What is said under the pointer.
fn said(browser: &mut Browser, what: &str) -> String {
    let text = format!(
        "[...document.querySelectorAll('#{what} .hoverlayer .hovertext')].map((one) => one.textContent).join(' ')"
    );
    browser.until("a text under the pointer", |browser| browser.js(&text) != "");
    browser.js(&text).as_str().unwrap().to_owned()
}

#[test]
#[ignore = "needs chromium: tests/run --install"]
fn every_plot_is_drawn_from_its_data_and_nothing_is_fetched() {
    let mut browser = Browser::start();
    let page = simulated().join("report.html");
    assert!(fs::metadata(&page).unwrap().len() < 6_000_000);
    browser.open(&page);
    assert_eq!(browser.complaints(), Vec::<String>::new());
    let requests = browser.requests();
    assert!(requests.len() == 1 && requests[0].starts_with("file://"), "{requests:?}");
    let drawn = browser.js(
        "JSON.parse(document.getElementById('plots').textContent).plots.map(({ id, traces }) => {
            const element = document.getElementById(id);
            const counts = (of) => of.map((trace) => trace.x.length);
            return {
                id, wanted: counts(traces), has: counts(element.data),
                shapes: element.querySelectorAll('.main-svg .point, .main-svg path.js-line, .main-svg .textpoint').length,
                still: getComputedStyle(element.parentElement.querySelector('.still')).display,
            };
        })",
    );
    let drawn = drawn.as_array().unwrap();
    let names: Vec<&str> = drawn.iter().filter_map(|plot| plot["id"].as_str()).collect();
    for name in ["history", "predicted", "importance", "slice-0", "parallel", "timeline", "nodes"] {
        assert!(names.contains(&format!("plot-{name}").as_str()), "{name} is not among {names:?}");
    }
    for plot in drawn {
        assert_eq!(plot["wanted"], plot["has"], "{plot}");
        assert!(plot["shapes"].as_u64().unwrap() > 0 && plot["still"] == "none", "{plot}");
    }
    // The policy holds: what a script asks for is refused.
    let refused = browser.js("fetch('https://example.org/').then(() => 'fetched', (error) => error.message)");
    assert_eq!(refused, "Failed to fetch");
    assert!(browser.complaints().iter().any(|line| line.contains("Content Security Policy")));
}

#[test]
#[ignore = "needs chromium: tests/run --install"]
fn the_pointer_names_the_trial_and_a_drag_enlarges() {
    let mut browser = Browser::start();
    browser.window(1400, "light");
    browser.open(&simulated().join("report.html"));
    for (what, trace) in [
        ("plot-history", "best"),
        ("plot-history", "other"),
        ("plot-history", "failed"),
        ("plot-predicted", "other"),
        ("plot-slice-0", "other"),
        ("plot-parallel", "default"),
    ] {
        // Another one may lie on top of it; its text then begins in the same way.
        let place = place_of(&mut browser, what, trace, 0);
        browser.pointer("mouseMoved", [5.0, 5.0]);
        browser.pointer("mouseMoved", place);
        let text = said(&mut browser, what);
        assert!(text.starts_with("trial ") && text.contains("N ") && text.contains(": "), "{what}, {trace}: {text}");
    }
    // The line of that trial, from the first axis to the last one.
    let [x, _] = place_of(&mut browser, "plot-parallel", "default", 0);
    browser.pointer("mouseMoved", [5.0, 5.0]);
    let place = place_of(&mut browser, "plot-parallel", "default", 0);
    browser.pointer("mouseMoved", place);
    browser.until("its line", |browser| browser.js("document.querySelectorAll('#plot-parallel .pointed').length") == 1);
    let line = browser.js(
        "(({ left, right }) => [left, right])(document.querySelector('#plot-parallel .pointed').getBoundingClientRect())",
    );
    let [left, right] = [0, 1].map(|end| line[end].as_f64().unwrap());
    assert!((left - x).abs() < 4.0 && right > left + 200.0, "{line}, {x}");
    // The last bar of the importance is the longest.
    for (what, trace, at, word) in [
        ("plot-importance", "explained", -1, "chance: up to"),
        ("plot-timeline", "UPDATE", 0, "rank 0, step"),
        ("plot-nodes", "speed", 0, "of the fastest"),
    ] {
        let mut place = place_of(&mut browser, what, trace, at);
        // Below the upper end of the node's bar.
        place[1] += if what == "plot-nodes" { 20.0 } else { 0.0 };
        browser.pointer("mouseMoved", [5.0, 5.0]);
        browser.pointer("mouseMoved", place);
        let text = said(&mut browser, what);
        assert!(text.contains(word), "{what}: {text}");
    }
    let span = "(([low, high]) => high - low)(document.getElementById('plot-history')._fullLayout.xaxis.range)";
    let before = browser.js(span).as_f64().unwrap();
    let [x, y] = place_of(&mut browser, "plot-history", "highest so far", 0);
    for (what, at) in [("mouseMoved", 60.0), ("mousePressed", 60.0), ("mouseDragged", 150.0), ("mouseReleased", 150.0)]
    {
        browser.pointer(if what == "mouseDragged" { "mouseMoved" } else { what }, [x + at, y]);
    }
    browser.until("a part of the plot", |browser| browser.js(span).as_f64().unwrap() < 0.6 * before);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "needs chromium: tests/run --install"]
fn a_tap_on_a_phone_names_the_trial_and_nothing_of_it_is_cut_off() {
    let mut browser = Browser::start();
    browser.phone(400);
    browser.open(&simulated().join("report.html"));
    assert_eq!(browser.js("matchMedia('(pointer: coarse)').matches"), true);
    for (what, trace) in [
        ("plot-history", "best"),
        ("plot-history", "failed"),
        ("plot-predicted", "other"),
        ("plot-slice-0", "other"),
        ("plot-parallel", "default"),
    ] {
        let place = place_of(&mut browser, what, trace, 0);
        assert!(place[0] > 0.0 && place[0] < 400.0, "{what}, {trace} lies at {place:?}");
        browser.tap(place);
        let text = said(&mut browser, what);
        assert!(text.starts_with("trial ") && text.contains("N ") && text.contains(": "), "{what}, {trace}: {text}");
        let box_of = format!(
            "(({{ left, right }}) => [left, right])(document.querySelector('#{what} .hoverlayer .hovertext').getBoundingClientRect())"
        );
        let sides = browser.js(&box_of);
        let [left, right] = [0, 1].map(|side| sides[side].as_f64().unwrap());
        assert!(left >= 0.0 && right <= 400.0, "{what}, {trace}: from {left} to {right} of 400: {text}");
    }
    // A finger that moves over a plot moves the page.
    assert_eq!(browser.js("document.getElementById('plot-history')._fullLayout.dragmode"), false);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "needs chromium: tests/run --install"]
fn texts_of_the_record_are_shown_as_they_are() {
    let mut browser = Browser::start();
    browser.window(1400, "light");
    browser.open(hostile());
    assert_eq!(browser.complaints(), Vec::<String>::new());
    let place = place_of(&mut browser, "plot-history", "best", 0);
    browser.pointer("mouseMoved", place);
    // Lines are joined without a space.
    let said: String = said(&mut browser, "plot-history").split_whitespace().collect();
    let wanted: String = HOSTILE.split_whitespace().collect();
    assert!(said.contains(&wanted), "{said}");
    assert_eq!(browser.js("window.broken ?? 'no'"), "no");
    assert_eq!(browser.js("document.querySelectorAll('main b, main img').length"), 0);
}

/// Its colours, few or many, and how light it is, 0 to 255.
fn look(browser: &mut Browser, png: &str) -> (u64, f64) {
    let found = browser.js(&format!(
        "(async () => {{
            const bytes = Uint8Array.from(atob('{png}'), (one) => one.charCodeAt(0));
            const image = await createImageBitmap(new Blob([bytes]));
            const canvas = new OffscreenCanvas(image.width, image.height).getContext('2d');
            canvas.drawImage(image, 0, 0);
            const {{ data }} = canvas.getImageData(0, 0, image.width, image.height);
            const colours = new Set();
            let sum = 0;
            for (let at = 0; at < data.length; at += 4) {{
                colours.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
                sum += (data[at] + data[at + 1] + data[at + 2]) / 3;
            }}
            return [colours.size, sum / (data.length / 4)];
        }})()"
    ));
    (found[0].as_u64().unwrap(), found[1].as_f64().unwrap())
}

/// The least contrast of the texts of plots and page with what is behind them, as WCAG defines it.
const CONTRAST: &str = "(() => {
    const channels = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((one) => {
        const share = one / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    const light = (colour) => channels(colour).reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
    const behind = light(BEHIND);
    const texts = [...document.querySelectorAll('.plot .xtick text, .plot .ytick text, .plot .xtitle, .plot .legendtext, figcaption, td, main p')];
    const ratios = texts.map((text) => {
        const style = getComputedStyle(text);
        const own = light(text instanceof SVGElement ? style.fill : style.color);
        return (Math.max(own, behind) + 0.05) / (Math.min(own, behind) + 0.05);
    });
    return ratios.length > 50 ? Math.min(...ratios) : 0;
})()";

#[test]
#[ignore = "needs chromium: tests/run --install"]
fn it_is_readable_on_a_phone_wide_in_the_dark_and_on_paper() {
    let mut browser = Browser::start();
    let page = simulated().join("report.html");
    let screen = CONTRAST.replace("BEHIND", "getComputedStyle(document.body).backgroundColor");
    let mut pictures = Vec::new();
    for (width, scheme) in [(1400, "light"), (400, "light"), (400, "dark"), (1400, "dark")] {
        browser.window(width, scheme);
        // The last one changes while it is shown.
        if (width, scheme) != (1400, "dark") {
            browser.open(&page);
        }
        let page_width = browser.js("document.documentElement.scrollWidth").as_u64().unwrap();
        assert!(page_width <= width.into(), "{scheme}: {page_width} wide in a window of {width}");
        let cut = browser.js(
            "[...document.querySelectorAll('.plot')].filter((plot) => {
                const svg = plot.querySelector('.main-svg').getBoundingClientRect();
                const figure = plot.closest('figure');
                return svg.width > plot.clientWidth + 1 || (plot.clientWidth > figure.clientWidth + 1 && getComputedStyle(figure).overflowX !== 'auto');
            }).map((plot) => plot.id)",
        );
        assert_eq!(cut, json!([]), "{width}, {scheme}");
        let contrast = browser.js(&screen).as_f64().unwrap();
        assert!(contrast >= 4.5, "{width}, {scheme}: {contrast}");
        pictures.push((width, scheme, browser.screenshot()));
    }
    // Printed from a dark screen: light, of the width of a page, with all trials.
    browser.js("dispatchEvent(new Event('beforeprint'))");
    let paper = CONTRAST.replace("BEHIND", "'rgb(255, 255, 255)'");
    assert!(browser.js(&paper).as_f64().unwrap() >= 4.5);
    let widths =
        browser.js("[...document.querySelectorAll('.plot .main-svg')].map((svg) => svg.getBoundingClientRect().width)");
    assert!(widths.as_array().unwrap().iter().all(|width| width.as_f64().unwrap() <= 680.0), "{widths}");
    assert_eq!(browser.js("document.querySelectorAll('details:not([open])').length"), 0);
    browser.js("dispatchEvent(new Event('afterprint'))");
    assert!(browser.js(&screen).as_f64().unwrap() >= 4.5, "dark again");
    let pdf = browser.call("Page.printToPDF", json!({ "printBackground": true, "preferCSSPageSize": true }));
    assert!(pdf["data"].as_str().unwrap().starts_with("JVBERi0"), "a PDF");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    // Where no policy forbids to look at pictures.
    browser.call("Page.navigate", json!({ "url": "about:blank" }));
    for (width, scheme, png) in pictures {
        let (colours, light) = look(&mut browser, &png);
        println!("{width} {scheme}: {colours} colours, light {light:.0} of 255");
        assert!(colours > 300, "{width} {scheme}: {colours} colours");
        assert!(if scheme == "dark" { light < 80.0 } else { light > 200.0 }, "{width} {scheme}: {light}");
    }
}

#[test]
#[ignore = "needs chromium: tests/run --install"]
fn without_scripts_it_has_its_numbers_pictures_and_tables() {
    let mut browser = Browser::start();
    browser.window(1000, "light");
    browser.call("Emulation.setScriptExecutionDisabled", json!({ "value": true }));
    browser.open(&simulated().join("report.html"));
    let text = browser.js("document.body.innerText");
    let text = text.as_str().unwrap();
    for word in ["GFLOP/s", "N = ", "best / default", "Won: ", "This plot is drawn by JavaScript", "FACT"] {
        assert!(text.contains(word), "'{word}' is not in {text}");
    }
    let pictures =
        browser.js("[...document.querySelectorAll('.still svg')].map((svg) => svg.getBoundingClientRect().height)");
    let pictures = pictures.as_array().unwrap();
    assert!(pictures.len() == 2 && pictures.iter().all(|height| height.as_f64().unwrap() > 200.0), "{pictures:?}");
}
