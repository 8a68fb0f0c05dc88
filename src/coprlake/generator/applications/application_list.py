"""All built-in applications."""

from coprlake.generator.applications import machines, platform, services, web
from coprlake.generator.template import Application

APPLICATIONS: tuple[Application, ...] = (
    *web.APPLICATIONS,
    *platform.APPLICATIONS,
    *machines.APPLICATIONS,
    *services.APPLICATIONS,
)
