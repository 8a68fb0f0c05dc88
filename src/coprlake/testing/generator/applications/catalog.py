"""All built-in applications."""

from coprlake.testing.generator.applications import machines, platform, services, web
from coprlake.testing.generator.template import Application

APPLICATIONS: tuple[Application, ...] = (
    *web.APPLICATIONS,
    *platform.APPLICATIONS,
    *machines.APPLICATIONS,
    *services.APPLICATIONS,
)
