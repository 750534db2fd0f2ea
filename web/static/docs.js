// The API reference: Swagger UI, in the shop's own colours, light or dark as the browser wishes.
window.onload = () => {
  document.title = "API reference · Payonce";
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const tint = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
  dark.addEventListener("change", tint);
  tint();
  const back = document.createElement("nav");
  back.className = "shop";
  back.innerHTML = '<a href="/">Payonce</a> <a href="/lab">Lab</a> <a href="/openapi.json">openapi.json</a>';
  document.body.prepend(back);
  window.ui = SwaggerUIBundle({
    dom_id: "#swagger-ui",
    url: "/openapi.json",
    layout: "BaseLayout",
    // A link inside the button that opens an operation would be two controls in one.
    deepLinking: false,
    presets: [SwaggerUIBundle.presets.apis],
  });
};
