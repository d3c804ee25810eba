drop table lane_places;
