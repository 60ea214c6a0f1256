// Draw the diagram that the parent page sends, and report its SVG and height, or that its code is invalid.
(() => {
  const tell = (news) => parent.postMessage(news, "*");
  const tellHeight = () => {
    const drawn = document.getElementById("diagram").firstElementChild;
    if (drawn) tell({ height: Math.ceil(drawn.getBoundingClientRect().height), svg: new XMLSerializer().serializeToString(drawn) });
  };
  // On a narrow screen, Mermaid draws the dates of a Gantt chart over each other. Remove the ones that overlap.
  const thinOut = (axis) => {
    let end = -Infinity;
    for (const date of axis.querySelectorAll(".tick text")) {
      const { left, right } = date.getBoundingClientRect();
      if (left < end + 4) date.remove();
      else end = right;
    }
  };
  // The height of the diagram depends on its width.
  addEventListener("resize", tellHeight);
  addEventListener("message", async ({ source, data }) => {
    if (source !== parent || typeof data?.code !== "string") return;
    const root = document.getElementById("diagram");
    document.documentElement.style.colorScheme = data.isDark ? "dark" : "light";
    try {
      mermaid.initialize({ startOnLoad: false, securityLevel: "strict", theme: "base", themeVariables: data.colours, gantt: { axisFormat: "%m-%d" }, suppressErrorRendering: true });
      const { svg } = await mermaid.render("drawn", data.code);
      root.innerHTML = svg;
      for (const axis of root.querySelectorAll(".grid")) thinOut(axis);
      tellHeight();
    } catch {
      tell({ isBroken: true });
    }
  });
  tell({ isReady: true });
})();
