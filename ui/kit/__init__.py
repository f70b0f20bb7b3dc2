"""What all tabs are built of: views, a guided tour, and handlers whose errors become one sentence."""

from ui.kit.handlers import QUICKLY, QUIETLY, alerts, on_queue, queue
from ui.kit.tour import Stop, Tour, read_stops
from ui.kit.views import View, Views

__all__ = ["QUICKLY", "QUIETLY", "Stop", "Tour", "View", "Views", "alerts", "on_queue", "queue", "read_stops"]
