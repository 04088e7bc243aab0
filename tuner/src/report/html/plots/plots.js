// Draws the plots of a page from the data in it, by plotly.js.
"use strict";
(() => {
  const { labels, plots } = JSON.parse(document.getElementById("plots").textContent);
  const root = document.documentElement;

  // Colours "--x" of a trace or a layout, as the style sheet has them now.
  function coloured(value, css, key) {
    if (typeof value === "string") {
      return key.endsWith("color") && value.startsWith("--") ? css.getPropertyValue(value).trim() : value;
    }
    if (Array.isArray(value)) {
      // Of long arrays of numbers and texts only those of colours change.
      return key.endsWith("color") || typeof value[0] === "object" ? value.map((one) => coloured(one, css, key)) : value;
    }
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, coloured(one, css, name)]));
  }

  // A narrow window cuts long lines under the pointer: there they go on in a second one.
  const narrow = matchMedia("(max-width: 640px)");
  function wrapped(label) {
    if (!narrow.matches) return label;
    const shown = (text) => text.replace(/<[^>]*>/g, "").replace(/&[^;]*;/g, "&").length;
    const lines = label.split("<br>").flatMap((line) => line.split(" ").reduce((done, word) => {
      const longer = `${done.at(-1)} ${word}`;
      return done.length > 0 && shown(longer) <= 40 ? [...done.slice(0, -1), longer] : [...done, word];
    }, []));
    return lines.join("<br>");
  }

  function traces(plot, css) {
    return plot.traces.map((trace) => {
      const drawn = coloured(trace, css, "");
      drawn.type ??= "scatter";
      if (trace.trials) {
        drawn.text = trace.trials.map((trial) => wrapped(labels[trial] ?? ""));
        drawn.hovertemplate = "%{text}<extra></extra>";
      }
      return drawn;
    });
  }

  function layout(plot, css, onPaper) {
    const color = (name) => css.getPropertyValue(name).trim();
    const axis = {
      gridcolor: color("--line"), linecolor: color("--line"), zeroline: false, automargin: true, tickfont: { color: color("--soft") },
    };
    const own = coloured(plot.layout, css, "");
    const font = { color: color("--text"), size: 12, family: "system-ui, sans-serif" };
    return {
      height: 340, barmode: "group", ...own,
      xaxis: { ...axis, ...own.xaxis }, yaxis: { ...axis, ...own.yaxis },
      width: onPaper ? 660 : undefined, autosize: !onPaper,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font,
      margin: { l: 10, r: 14, t: own.showlegend === false ? 12 : 30, b: 10, ...own.margin },
      legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", xref: "container", x: 0, ...own.legend },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: color("--faint"), activecolor: color("--text") },
      hovermode: "closest",
      hoverlabel: { align: "left", namelength: -1, bgcolor: color("--box"), bordercolor: color("--soft"), font },
      // A finger moves the page, and a tap names the trial.
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    };
  }

  // A small plot is enlarged by dragging, and is as before after a double click.
  const config = (plot) => ({
    displaylogo: false, responsive: true, displayModeBar: plot.layout.showlegend === false ? false : "hover",
    modeBarButtons: [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d", "toImage"]],
  });

  function draw(onPaper) {
    const css = getComputedStyle(root);
    for (const plot of plots) {
      const element = document.getElementById(plot.id);
      try {
        Plotly.react(element, traces(plot, css), layout(plot, css, onPaper), config(plot));
        element.parentElement.classList.add("drawn");
      } catch (error) {
        console.error(`${plot.id} was not drawn: ${error}`);
      }
    }
  }

  // The line of the trial under the pointer, on top of all others.
  function pointed(element) {
    const name = "http://www.w3.org/2000/svg";
    let path = null;
    element.on("plotly_unhover", () => path?.remove());
    element.on("plotly_hover", ({ points: [point] }) => {
      path?.remove();
      const { data, xaxis, yaxis } = point;
      const trial = data.trials?.[point.pointNumber];
      const layer = element.querySelector(".main-svg .layer-above");
      if (trial === undefined || trial === null || !layer) return;
      const line = data.trials.flatMap((of, at) => (of === trial ? [`${xaxis.c2p(data.x[at])},${yaxis.c2p(data.y[at])}`] : []));
      path = document.createElementNS(name, "path");
      path.setAttribute("d", `M${line.join("L")}`);
      path.setAttribute("class", "pointed");
      path.setAttribute("transform", `translate(${xaxis._offset},${yaxis._offset})`);
      layer.append(path);
    });
  }

  draw(false);
  const parallel = document.getElementById("plot-parallel");
  if (parallel?.on) pointed(parallel);

  for (const query of [matchMedia("(prefers-color-scheme: dark)"), narrow]) {
    query.addEventListener("change", () => draw(root.classList.contains("paper")));
  }

  // On paper all is light, of the width of a page, and nothing is folded.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    folded.forEach((details) => { details.open = true; });
    root.classList.add("paper");
    draw(true);
  });
  addEventListener("afterprint", () => {
    folded.forEach((details) => { details.open = false; });
    root.classList.remove("paper");
    draw(false);
  });
})();
